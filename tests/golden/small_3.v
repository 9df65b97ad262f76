// Module small_model: 2 trees, 10 nodes
// Written by forestc; change the model and compile again rather than this file.
// Verilog-2005, no vendor primitives. Latency 3 cycle(s), initiation interval 1.
// Each clock takes a row. in_valid goes along with it, comes out as out_valid beside y, and halts nothing.
// No back pressure: a result stays for one clock. Compile with --stream for a receiver that may have to wait.
// No reset: all registers start at 0.
// No clock enable.
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
    input  wire clk,
    input  wire in_valid,
    output wire out_valid,
    input  wire [16:0] x,
    output wire [5:0] y
);
    reg r14;
    reg [2:0] r15;
    reg r22;
    reg [3:0] r25;
    reg r30;
    reg [4:0] r32;
    reg r33;
    reg r34;
    reg r35;
    wire [7:0] x0_a_b = x[7:0];
    wire [5:0] x1_finish = x[13:8];
    wire [2:0] x2_1st = x[16:14];
    wire c7 = x1_finish[5] & (~x1_finish[4] | (~x1_finish[3] | (~x1_finish[2] & (~x1_finish[1] & ~x1_finish[0]))));  // x1_finish < -7, tree 0, node 1
    wire c8 = x1_finish[5] | (~x1_finish[4] | (~x1_finish[3] | (~x1_finish[2] | (~x1_finish[1] | ~x1_finish[0]))));  // x1_finish < 31, tree 0, node 1
    wire n9 = ~c8;
    wire n10 = c7 | n9;
    wire [2:0] n11 = n10 ? 3'd0 : 3'd7;
    wire c13 = ~x0_a_b[7] & (~x0_a_b[6] | (~x0_a_b[5] & (~x0_a_b[4] | (~x0_a_b[3] | (~x0_a_b[2] & ~x0_a_b[1])))));  // x0_a_b < 90, tree 0, node 0
    wire [2:0] n16 = r14 ? r15 : 3'd5;
    wire [1:0] n19 = r14 ? 2'd1 : 2'd0;
    wire c21 = (x2_1st == 3'd1) | (x2_1st == 3'd4);
    wire [1:0] n23 = r22 ? n19 : 2'd3;
    wire [3:0] sum24 = {2'd0, n23} + {1'd0, n16};
    wire c26 = r25 < 4'd6;  // r25 < 6
    wire [4:0] sum28 = {1'd0, r25} + 5'h1c;
    wire n31 = ~r30;
    wire unused = &{1'b0, x0_a_b[0:0]};

    initial begin
        r14 = 1'd0;
        r15 = 3'd0;
        r22 = 1'd0;
        r25 = 4'd0;
        r30 = 1'd0;
        r32 = 5'd0;
        r33 = 1'd0;
        r34 = 1'd0;
        r35 = 1'd0;
    end
    always @(posedge clk) begin
        r14 <= c13;
        r15 <= n11;
        r22 <= c21;
        r25 <= sum24;
        r30 <= c26;
        r32 <= sum28;
        r33 <= in_valid;
        r34 <= r33;
        r35 <= r34;
    end

    assign y[0:0] = n31;
    assign y[5:1] = r32;
    assign out_valid = r35;
endmodule
`default_nettype wire
