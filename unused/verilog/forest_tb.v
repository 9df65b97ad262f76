// Self-checking test bench of forest: reads lines "x y" in hexadecimal from the file that the parameter vectors
// names, drives x, and compares y. Ends with PASS or FAIL and the counts, or says that it can't read a vector.
`default_nettype none
module forest_tb #(
    parameter vectors = "vectors.txt"
);
    reg [15:0] x, given;
    reg [0:0] expected;
    wire [0:0] y;
    integer inputs, read, sent, seen, wrong;

    task compare;
        begin
            if (y !== expected) begin
                if (wrong < 10)
                    $display("MISMATCH vector %0d: y = %h, should be %h", seen, y, expected);
                wrong = wrong + 1;
            end
            seen = seen + 1;
        end
    endtask

    task finish;
        begin
            if (sent == 0 || read != -1)
                $display("can't read vector %0d of %0s", sent, vectors);
            else if (wrong == 0 && seen == sent)
                $display("PASS %0d vectors", seen);
            else
                $display("FAIL %0d wrong, %0d seen of %0d vectors", wrong, seen, sent);
            $finish;
        end
    endtask

    task open;
        begin
            inputs = $fopen(vectors, "r");
            sent = 0; seen = 0; wrong = 0;
        end
    endtask

    task next;  // assigns x, as not every simulator sees what $fscanf writes; read is -1 at the end of the file
        begin
            read = 0;
            if (inputs != 0) begin
                read = $fscanf(inputs, "%h %h\n", given, expected);
                if (read == 0 && $feof(inputs)) read = -1;
            end
            if (read == 2) begin
                x = given;
                sent = sent + 1;
            end
        end
    endtask
    forest dut (.x(x), .y(y));

    initial begin
        open;
        next;
        while (read == 2) begin
            #1 compare;
            next;
        end
        finish;
    end
endmodule
`default_nettype wire
