-- Entity small_model: 2 trees, 10 nodes
-- Written by forestc; change the model and compile again rather than this file.
-- VHDL-93, no vendor primitives. Latency 3 cycle(s), initiation interval 1.
-- Each clock takes a row. in_valid goes along with it, comes out as out_valid beside y, and halts nothing.
-- No back pressure: a result stays for one clock. Compile with --stream for a receiver that may have to wait.
-- No reset: all registers start at 0.
-- No clock enable.
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
        clk : in std_logic;
        in_valid : in std_logic;
        out_valid : out std_logic;
        x : in std_logic_vector(16 downto 0);
        y : out std_logic_vector(5 downto 0)
    );
end entity;

architecture rtl of small_model is
    signal r14 : std_logic := '0';
    signal r15 : unsigned(2 downto 0) := (others => '0');
    signal r22 : std_logic := '0';
    signal r25 : unsigned(3 downto 0) := (others => '0');
    signal r30 : std_logic := '0';
    signal r32 : signed(4 downto 0) := (others => '0');
    signal r33 : std_logic := '0';
    signal r34 : std_logic := '0';
    signal r35 : std_logic := '0';
    signal x0_a_b : unsigned(7 downto 0);
    signal x1_finish : signed(5 downto 0);
    signal x2_1st : unsigned(2 downto 0);
    signal c7 : std_logic;
    signal c8 : std_logic;
    signal n9 : std_logic;
    signal n10 : std_logic;
    signal n11 : unsigned(2 downto 0);
    signal c13 : std_logic;
    signal n16 : unsigned(2 downto 0);
    signal n19 : unsigned(1 downto 0);
    signal c21 : std_logic;
    signal n23 : unsigned(1 downto 0);
    signal sum24 : unsigned(3 downto 0);
    signal c26 : std_logic;
    signal sum28 : signed(4 downto 0);
    signal n31 : std_logic;
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
    n16 <= r15 when r14 = '1' else "101";
    n19 <= "01" when r14 = '1' else "00";
    c21 <= '1' when x2_1st = "001" or x2_1st = "100" else '0';
    n23 <= n19 when r22 = '1' else "11";
    sum24 <= resize(n23, 4) + resize(n16, 4);
    c26 <= '1' when r25 < "0110" else '0';  -- r25 < 6
    sum28 <= signed(resize(r25, 5)) + "11100";
    n31 <= not r30;

    process (clk)
    begin
        if rising_edge(clk) then
            r14 <= c13;
            r15 <= n11;
            r22 <= c21;
            r25 <= sum24;
            r30 <= c26;
            r32 <= sum28;
            r33 <= in_valid;
            r34 <= r33;
            r35 <= r34;
        end if;
    end process;

    y(0) <= n31;
    y(5 downto 1) <= std_logic_vector(r32);
    out_valid <= r35;
end architecture;
