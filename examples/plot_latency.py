"""
Trade flip-flops for clock rate
===============================

``latency=N`` places N stages of registers, so that the longest stage is as short as
possible; a new row enters in each clock cycle whatever the latency. This example
compiles a random forest of the handwritten digits at six latencies and plots the
estimated clock of an ECP5 and the flip-flops. Estimates need no synthesis; ``forestc
synth`` measures.
"""

import tempfile

import matplotlib.pyplot as plt
from demo import split_digits
from sklearn.ensemble import RandomForestClassifier

import forestc

X, _, y, _ = split_digits()
model = RandomForestClassifier(8, max_depth=6, random_state=0).fit(X, y)

latencies, rows = range(1, 7), []
for latency in latencies:
    out = tempfile.mkdtemp()
    done = forestc.compile(model, X, out, label=y, latency=latency, targets="verilog")
    (estimate,) = [each for each in done.figures["estimate"] if each["device"] == "ecp5-85k"]
    rows.append(estimate)
    low, high = estimate["fmax_range"]
    mhz = f"{estimate['fmax_mhz']:.0f} MHz ({low:.0f} to {high:.0f})"
    print(f"{latency} cycles: {mhz}, {estimate['ff']} flip-flops")

# %%
# The band holds nine of ten designs of data sets that the estimate was not fitted on.

figure, (clock, registers) = plt.subplots(2, sharex=True, figsize=(6.4, 4.8))
band = zip(*(row["fmax_range"] for row in rows), strict=True)
clock.fill_between(latencies, *band, alpha=0.2, lw=0)
clock.plot(latencies, [row["fmax_mhz"] for row in rows], "o-")
clock.set(ylabel="clock, MHz", ylim=(0, None))
registers.bar(latencies, [row["ff"] for row in rows], width=0.5, color="C1")
registers.set(xlabel="latency, clock cycles", ylabel="flip-flops")
plt.show()
