-- forest in a design in VHDL, whether the core is in Verilog or in VHDL. Compile forest_pkg.vhd as well.
-- Before the entity:
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.forest_pkg.all;
-- In the declarations of the architecture:
    signal forest_in : forest_row;
    signal forest_out : forest_result;
    signal forest_x : std_logic_vector(15 downto 0);
    signal forest_y : std_logic_vector(0 downto 0);
-- In its body:
    -- forest_in.x0 <= ...;  signed(15 downto 0): ap_fixed<16,6>: floor(float32(value) * 2^10), saturated to -32768..32767; 2.0634765625 becomes 2113
    forest_x <= pack(forest_in);
    forest_out <= unpack(forest_y);
    forest_core : forest
        port map (
            x => forest_x,
            y => forest_y
        );
    -- forest_out.y_label: std_logic, index of the class
