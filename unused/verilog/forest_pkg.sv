// forest_pkg: a row and a result of forest as packed structs, which are the ports x and y bit by bit.
// Written by forestc; change the model and compile again rather than this file. SystemVerilog.
package forest_pkg;
    typedef struct packed {
        logic signed [15:0] x0;  // ap_fixed<16,6>: floor(float32(value) * 2^10), saturated to -32768..32767; 2.0634765625 becomes 2113
    } forest_row;  // the bits of x, highest first

    typedef struct packed {
        logic y_label;  // index of the class
    } forest_result;  // the bits of y, highest first
endpackage
