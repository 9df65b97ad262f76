// Module forest: 1 trees, 3 nodes
// Written by forestc; change the model and compile again rather than this file.
// Verilog-2005, no vendor primitives. Latency 0 cycle(s), initiation interval 1.
//
// x, 16 bits: the features' words
//   [15:0] x0: ap_fixed<16,6>: floor(float32(value) * 2^10), saturated to -32768..32767; 2.0634765625 becomes 2113
// y, 1 bits: the results
//   [0:0] label: unsigned, index of the class
`default_nettype none
module forest (
    input  wire [15:0] x,
    output wire [0:0] y
);
    wire [15:0] x0 = x[15:0];
    wire c3 = x0[15] | (~x0[14] & (~x0[13] & (~x0[12] & (~x0[11] | (~x0[10] & (~x0[9] & (~x0[8] & (~x0[7] & (~x0[6] | (~x0[5] & (~x0[4] & (~x0[3] & (~x0[2] & (~x0[1] & ~x0[0]))))))))))))));  // x0 < 2113, tree 0, node 0
    wire n4 = ~c3;

    assign y[0:0] = n4;
endmodule
`default_nettype wire
