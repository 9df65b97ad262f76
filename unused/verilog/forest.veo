// forest in a design in SystemVerilog, whether the core is in Verilog or in VHDL. Compile forest_pkg.sv before it.
    forest_pkg::forest_row forest_in;
    forest_pkg::forest_result forest_out;
    // forest_in.x0 = ...;  logic signed [15:0]: ap_fixed<16,6>: floor(float32(value) * 2^10), saturated to -32768..32767; 2.0634765625 becomes 2113
    forest forest_core (
        .x(forest_in),
        .y(forest_out)
    );
    // forest_out.y_label: logic, index of the class
