/* Firmware that classifies rows of floats and prints what it finds by semihosting, line by line:
 *   selftest -1
 *   row NUMBER class INDEX score SCORE
 */
#include <stdint.h>

#include "cancer.h"
#include "cancer_selftest.h"
#include "rows.h"

void stop(int status);

/* A request to the debugger, which here is qemu. */
static int32_t semihosting(uint32_t request, const void *argument)
{
    register uint32_t r0 __asm__("r0") = request;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
}

void stop(int status)
{
    /* SYS_EXIT: the application is done, or it met an error */
    (void)semihosting(0x18u, (const void *)(uintptr_t)(status == 0 ? 0x20026u : 0x20023u));
    for (;;) {
    }
}

static void print(const char *text)
{
    (void)semihosting(0x04u, text); /* SYS_WRITE0 */
}

static void print_number(int32_t number)
{
    char text[12];
    char *at = text + sizeof text - 1;
    uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
    *at = '\0';
    do {
        at--;
        *at = (char)('0' + rest % 10u);
        rest /= 10u;
    } while (rest != 0u);
    if (number < 0) {
        at--;
        *at = '-';
    }
    print(at);
}

int main(void)
{
    const int wrong = cancer_selftest();
    int row;
    print("selftest ");
    print_number(wrong);
    print("\n");
    for (row = 0; row < ROWS; row++) {
        cancer_word x[CANCER_INPUTS];
        score scores[CANCER_OUTPUTS];
        cancer_quantize(rows[row], x);
        cancer_scores(x, scores);
        print("row ");
        print_number(row);
        print(" class ");
        print_number(cancer_predict(x));
        print(" score ");
        print_number(scores[CANCER_OUTPUTS - 1]);
        print("\n");
    }
    return wrong >= 0;
}
