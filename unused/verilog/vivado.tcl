# Vivado, out of context: the cells of forest, then place and route between registers on all its ports.
#   vivado -mode batch -source vivado.tcl -tclargs PART PERIOD_NS FOLDER
# Each argument may be left out from the right. Reports go to the folder.
# the part is a default, as none was given: set yours
set part xcku5p-ffvb676-2-e
# ns; the clock is a default, as none was given: set yours
set period 2.000
set folder vivado
if {[llength $argv] > 0} { set part [lindex $argv 0] }
if {[llength $argv] > 1} { set period [lindex $argv 1] }
if {[llength $argv] > 2} { set folder [lindex $argv 2] }
file mkdir $folder

# the design as it is
read_verilog forest.v
synth_design -mode out_of_context -flatten_hierarchy full -part $part -top forest
report_utilization -file [file join $folder utilization.rpt]
close_design

# between registers
read_verilog forest_registered.v
read_xdc -mode out_of_context forest.xdc
synth_design -mode out_of_context -flatten_hierarchy full -part $part -top forest_registered
# in place of the constraint's period
create_clock -name clk -period $period [get_ports clk]
opt_design
place_design
phys_opt_design
route_design
report_utilization -file [file join $folder placed.rpt]
report_timing_summary -max_paths 1 -file [file join $folder timing.rpt]
write_checkpoint -force [file join $folder forest_registered.dcp]
