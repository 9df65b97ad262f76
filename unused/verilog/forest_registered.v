// forest_registered: forest between registers on all its ports, so that its timing can be measured.
`default_nettype none
module forest_registered (
    input  wire clk,
    input  wire [15:0] x,
    output wire [0:0] y
);
    reg  [15:0] x_held;
    reg  [0:0] y_held;
    wire [0:0] y_core;
    forest core (.x(x_held), .y(y_core));
    assign y = y_held;
    always @(posedge clk) begin
        x_held <= x;
        y_held <= y_core;
    end
endmodule
`default_nettype wire
