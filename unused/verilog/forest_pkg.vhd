-- forest_pkg: forest as a component, whether the core is in Verilog or in VHDL; a row and a result as records; the
-- functions between these and the ports x and y.
-- Written by forestc; change the model and compile again rather than this file. VHDL-93.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package forest_pkg is
    component forest is
        port (
            x : in std_logic_vector(15 downto 0);
            y : out std_logic_vector(0 downto 0)
        );
    end component;

    type forest_row is record
        x0 : signed(15 downto 0);  -- ap_fixed<16,6>: floor(float32(value) * 2^10), saturated to -32768..32767; 2.0634765625 becomes 2113
    end record;

    type forest_result is record
        y_label : std_logic;  -- index of the class
    end record;

    function pack(row : forest_row) return std_logic_vector;
    function unpack(x : std_logic_vector(15 downto 0)) return forest_row;
    function pack(result : forest_result) return std_logic_vector;
    function unpack(y : std_logic_vector(0 downto 0)) return forest_result;
end package;

package body forest_pkg is
    function pack(row : forest_row) return std_logic_vector is
        variable x : std_logic_vector(15 downto 0);
    begin
        x(15 downto 0) := std_logic_vector(row.x0);
        return x;
    end function;

    function unpack(x : std_logic_vector(15 downto 0)) return forest_row is
        variable row : forest_row;
    begin
        row.x0 := signed(x(15 downto 0));
        return row;
    end function;

    function pack(result : forest_result) return std_logic_vector is
        variable y : std_logic_vector(0 downto 0);
    begin
        y(0) := result.y_label;
        return y;
    end function;

    function unpack(y : std_logic_vector(0 downto 0)) return forest_result is
        variable result : forest_result;
    begin
        result.y_label := y(0);
        return result;
    end function;
end package body;
