# Quartus: the cells of forest, then place and route between registers on all its ports, which become virtual pins.
#   quartus_sh -t quartus.tcl PART PERIOD_NS FOLDER
# Each argument may be left out from the right. Reports go to the folder.
package require ::quartus::project
package require ::quartus::flow

# the part is a default, as none was given: set yours
set part 5CSEBA6U23I7
# ns; the clock is a default, as none was given: set yours
set period 2.000
set folder quartus
if {[llength $quartus(args)] > 0} { set part [lindex $quartus(args) 0] }
if {[llength $quartus(args)] > 1} { set period [lindex $quartus(args) 1] }
if {[llength $quartus(args)] > 2} { set folder [lindex $quartus(args) 2] }
set sources [pwd]
file mkdir $folder
cd $folder

# the design as it is
project_new -overwrite -part $part forest
set_global_assignment -name TOP_LEVEL_ENTITY forest
set_global_assignment -name VERILOG_FILE [file join $sources forest.v]
execute_module -tool map
project_close

# between registers
set constraint [open clock.sdc w]
puts $constraint "create_clock -name clk -period $period \[get_ports clk\]"
close $constraint
project_new -overwrite -part $part forest_registered
set_global_assignment -name TOP_LEVEL_ENTITY forest_registered
set_global_assignment -name VERILOG_FILE [file join $sources forest.v]
set_global_assignment -name VERILOG_FILE [file join $sources forest_registered.v]
set_global_assignment -name SDC_FILE clock.sdc
foreach port {x y} {
  set_instance_assignment -name VIRTUAL_PIN ON -to $port
}
execute_flow -compile
project_close
