/* Features of a window of accelerometer samples, in integers: windows.py computes the same numbers. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdint.h>

#define SAMPLES 64 /* of a window, 1.28 s at 50 Hz */
#define AXES 3
#define FEATURES (5 * AXES)

/* floor(value / 64) without a shift of a negative number */
static inline int16_t mean_of(int32_t sum)
{
    return (int16_t)(((uint32_t)sum + UINT32_C(0x80000000)) / SAMPLES - UINT32_C(0x80000000) / SAMPLES);
}

/* For each axis: mean, least, greatest, half of the mean step, and how often the signal crosses its mean. */
static inline void features_of(const int16_t window[SAMPLES][AXES], int16_t x[FEATURES])
{
    int axis, k;
    for (axis = 0; axis < AXES; axis++) {
        int32_t sum = 0, steps = 0;
        int16_t least = window[0][axis], greatest = window[0][axis], mean, crossings = 0;
        for (k = 0; k < SAMPLES; k++) {
            const int16_t sample = window[k][axis];
            const int32_t step = k > 0 ? (int32_t)sample - window[k - 1][axis] : 0;
            sum += sample;
            steps += step < 0 ? -step : step;
            least = sample < least ? sample : least;
            greatest = sample > greatest ? sample : greatest;
        }
        mean = mean_of(sum);
        for (k = 1; k < SAMPLES; k++) {
            crossings = (int16_t)(crossings + ((window[k][axis] >= mean) != (window[k - 1][axis] >= mean)));
        }
        x[5 * axis] = mean;
        x[5 * axis + 1] = least;
        x[5 * axis + 2] = greatest;
        x[5 * axis + 3] = (int16_t)(steps / (2 * SAMPLES));
        x[5 * axis + 4] = crossings;
    }
}

#endif
