// Module small_model: 2 trees, 10 nodes
// Written by forestc; change the model and compile again rather than this file.
// Verilog-2005, no vendor primitives. Latency 0 cycle(s), initiation interval 1.
// Combinational, without a clock: y follows x.
//
// x, 17 bits: the features' words
//   [7:0] x0_a_b: uint8: floor(float32(value)), saturated to 0..255; 90.0 becomes 90
//   [13:8] x1_finish: int6: floor(float32(value)), saturated to -32..30, 31 means missing; -7.0 becomes -7
//   [16:14] x2_1st: category<5>: the category's code, 5 for any that is not 0..4; 1.0 becomes 1
// y, 6 bits: the results
//   [0:0] label: unsigned, index of the class
//   [5:1] score0: signed, one step is worth the manifest's scale
`default_nettype none
module small_model (
    input  wire [16:0] x,
    output wire [5:0] y
);
    wire [7:0] x0_a_b = x[7:0];
    wire [5:0] x1_finish = x[13:8];
    wire [2:0] x2_1st = x[16:14];
    wire c7 = x1_finish[5] & (~x1_finish[4] | (~x1_finish[3] | (~x1_finish[2] & (~x1_finish[1] & ~x1_finish[0]))));  // x1_finish < -7, tree 0, node 1
    wire c8 = x1_finish[5] | (~x1_finish[4] | (~x1_finish[3] | (~x1_finish[2] | (~x1_finish[1] | ~x1_finish[0]))));  // x1_finish < 31, tree 0, node 1
    wire n9 = ~c8;
    wire n10 = c7 | n9;
    wire [2:0] n11 = n10 ? 3'd0 : 3'd7;
    wire c13 = ~x0_a_b[7] & (~x0_a_b[6] | (~x0_a_b[5] & (~x0_a_b[4] | (~x0_a_b[3] | (~x0_a_b[2] & ~x0_a_b[1])))));  // x0_a_b < 90, tree 0, node 0
    wire [2:0] n14 = c13 ? n11 : 3'd5;
    wire [1:0] n17 = c13 ? 2'd1 : 2'd0;
    wire c19 = (x2_1st == 3'd1) | (x2_1st == 3'd4);
    wire [1:0] n20 = c19 ? n17 : 2'd3;
    wire [3:0] sum21 = {2'd0, n20} + {1'd0, n14};
    wire c22 = sum21 < 4'd6;  // sum21 < 6
    wire n23 = ~c22;
    wire [4:0] sum25 = {1'd0, sum21} + 5'h1c;
    wire unused = &{1'b0, x0_a_b[0:0]};

    assign y[0:0] = n23;
    assign y[5:1] = sum25;
endmodule
`default_nettype wire
