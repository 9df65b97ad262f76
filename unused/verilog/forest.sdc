# The clock of forest_registered, ns; the clock is a default, as none was given: set yours.
create_clock -name clk -period 2.000 [get_ports clk]
