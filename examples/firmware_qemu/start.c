/* The start of a Cortex-M3 without a C library: the vector table, and what must happen before main. */
#include <stdint.h>

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];

int main(void);
void stop(int status);
void reset(void);

static void fault(void)
{
    stop(1);
}

void reset(void)
{
    const uint32_t *from = data_load;
    uint32_t *to;
    for (to = data_start; to < data_end; to++) {
        *to = *from;
        from++;
    }
    for (to = bss_start; to < bss_end; to++) {
        *to = 0;
    }
    stop(main());
}

/* The first stack pointer, the reset, and the faults; no interrupt is switched on. */
typedef union {
    void (*handler)(void);
    uint32_t *stack;
} vector;

const vector vectors[16] __attribute__((section(".vectors"), used)) = {
    {.stack = stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault},
};
