/* The firmware on a computer: reads windows of samples from standard input, and prints the class of each. On a board,
 * the samples come from the sensor instead. */
#include <stdio.h>

#include "motion.h"
#include "windows.h"

int main(void)
{
    static int16_t window[SAMPLES][AXES];
    while (fread(window, sizeof window, 1, stdin) == 1) {
        int16_t x[FEATURES];
        features_of((const int16_t(*)[AXES])window, x);
        (void)printf("%d\n", (int)motion_predict(x));
    }
    return 0;
}
