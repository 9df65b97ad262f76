-- Entity small_model: 2 trees, 10 nodes
-- Written by forestc; change the model and compile again rather than this file.
-- VHDL-93, no vendor primitives. Latency 0 cycle(s), initiation interval 1.
-- Combinational, without a clock: y follows x.
--
-- x, 17 bits: the features' words
--   [7:0] x0_a_b: uint8: floor(float32(value)), saturated to 0..255; 90.0 becomes 90
--   [13:8] x1_finish: int6: floor(float32(value)), saturated to -32..30, 31 means missing; -7.0 becomes -7
--   [16:14] x2_1st: category<5>: the category's code, 5 for any that is not 0..4; 1.0 becomes 1
-- y, 6 bits: the results
--   [0:0] label: unsigned, index of the class
--   [5:1] score0: signed, one step is worth the manifest's scale
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity small_model is
    port (
        x : in std_logic_vector(16 downto 0);
        y : out std_logic_vector(5 downto 0)
    );
end entity;

architecture rtl of small_model is
    signal x0_a_b : unsigned(7 downto 0);
    signal x1_finish : signed(5 downto 0);
    signal x2_1st : unsigned(2 downto 0);
    signal c7 : std_logic;
    signal c8 : std_logic;
    signal n9 : std_logic;
    signal n10 : std_logic;
    signal n11 : unsigned(2 downto 0);
    signal c13 : std_logic;
    signal n14 : unsigned(2 downto 0);
    signal n17 : unsigned(1 downto 0);
    signal c19 : std_logic;
    signal n20 : unsigned(1 downto 0);
    signal sum21 : unsigned(3 downto 0);
    signal c22 : std_logic;
    signal n23 : std_logic;
    signal sum25 : signed(4 downto 0);
begin
    x0_a_b <= unsigned(x(7 downto 0));
    x1_finish <= signed(x(13 downto 8));
    x2_1st <= unsigned(x(16 downto 14));
    c7 <= x1_finish(5) and (not x1_finish(4) or (not x1_finish(3) or (not x1_finish(2) and (not x1_finish(1) and not x1_finish(0)))));  -- x1_finish < -7, tree 0, node 1
    c8 <= x1_finish(5) or (not x1_finish(4) or (not x1_finish(3) or (not x1_finish(2) or (not x1_finish(1) or not x1_finish(0)))));  -- x1_finish < 31, tree 0, node 1
    n9 <= not c8;
    n10 <= c7 or n9;
    n11 <= "000" when n10 = '1' else "111";
    c13 <= not x0_a_b(7) and (not x0_a_b(6) or (not x0_a_b(5) and (not x0_a_b(4) or (not x0_a_b(3) or (not x0_a_b(2) and not x0_a_b(1))))));  -- x0_a_b < 90, tree 0, node 0
    n14 <= n11 when c13 = '1' else "101";
    n17 <= "01" when c13 = '1' else "00";
    c19 <= '1' when x2_1st = "001" or x2_1st = "100" else '0';
    n20 <= n17 when c19 = '1' else "11";
    sum21 <= resize(n20, 4) + resize(n14, 4);
    c22 <= '1' when sum21 < "0110" else '0';  -- sum21 < 6
    n23 <= not c22;
    sum25 <= signed(resize(sum21, 5)) + "11100";

    y(0) <= n23;
    y(5 downto 1) <= std_logic_vector(sum25);
end architecture;
