/* forest: 1 trees, 3 nodes
 * Written by forestc; change the model and compile again rather than this file.
 * C99, no heap, no floating-point arithmetic, no library calls.
 *
 * x: the features' words, in this order:
 *   x[0] x0: ap_fixed<16,6>: floor(float32(value) * 2^10), saturated to -32768..32767; 2.0634765625 becomes 2113
 */
#ifndef FORESTC_FOREST_H
#define FORESTC_FOREST_H

#include <float.h>
#include <stdint.h>

/* Stops the compiler where a condition does not hold. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define FOREST_ASSERT(condition, name) static_assert(condition, #name)
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define FOREST_ASSERT(condition, name) _Static_assert(condition, #name)
#else
#define FOREST_ASSERT(condition, name) typedef char name[(condition) ? 1 : -1]
#endif

#define FOREST_INPUTS 1
#define FOREST_COLUMNS 1
#define FOREST_OUTPUTS 1
#define FOREST_CLASSES 2
/* A score is worth this much in the model's own units. */
#define FOREST_SCALE 1.0

/* The type of x's elements. Use this name: after another training it may stand for another type. */
typedef int16_t forest_word;

/* Places of the features in x. */
enum forest_input {
    FOREST_X0 = 0
};

FOREST_ASSERT(sizeof(int16_t) == 2u, forest_int16_t_has_16_bits);
FOREST_ASSERT(sizeof(int8_t) == 1u, forest_int8_t_has_8_bits);
FOREST_ASSERT(sizeof(uint8_t) == 1u, forest_uint8_t_has_8_bits);
FOREST_ASSERT(FOREST_X0 + 1 == FOREST_INPUTS, forest_inputs_are_all_there);

#if FLT_RADIX == 2 && FLT_MANT_DIG == 24 && FLT_MIN_EXP == -125 && FLT_MAX_EXP == 128

FOREST_ASSERT(sizeof(float) == sizeof(int32_t), forest_float_has_32_bits_else_use_c_quantizer_none);

/* The bits of a value of a row. From here on integers are enough. */
static inline uint32_t forest_row_bits(const float *value)
{
    union { float f; uint32_t u; } u;
    u.f = *value;
    return u.u;
}

/* floor(value * 2^fraction), saturated to -below..high; `absent` of a NaN. */
static inline int32_t forest_fixed(uint32_t bits, int fraction, uint32_t below, uint32_t high, int32_t absent)
{
    const uint32_t size = bits & UINT32_C(0x7FFFFFFF);
    const uint32_t up = size != bits ? 1u : 0u;  /* a negative value's size is rounded up */
    const uint32_t most = up != 0u ? below : high;
    uint32_t steps = size & UINT32_C(0x7FFFFF);
    int shift = (int)(size >> 23);
    if (size > UINT32_C(0x7F800000)) {
        return absent;
    }
    if (shift > 0) {
        steps |= UINT32_C(0x800000);
    } else {
        shift = 1;
    }
    if (steps == 0u) {
        return 0;
    }
    shift = size == UINT32_C(0x7F800000) ? 32 : shift + fraction - 150;
    if (shift >= 0) {
        steps = (shift < 32 && steps <= most >> shift) ? steps << shift : most;
    } else {
        steps = (shift > -32 ? (steps - up) >> -shift : 0u) + up;
        steps = steps < most ? steps : most;
    }
    if (up == 0u || steps == 0u) {
        return (int32_t)steps;
    }
    return -1 - (int32_t)(steps - 1u);
}

/* A row's words, as the model was trained on its columns. A NaN where the model takes none gets the highest word. */
static inline void forest_quantize(const float row[FOREST_COLUMNS], forest_word x[FOREST_INPUTS])
{
    x[0] = (int16_t)forest_fixed(forest_row_bits(&row[0]), 10, UINT32_C(32768), UINT32_C(32767), 32767);
}

#else
/* Here float is not the 32-bit float of IEEE 754, whose bits the quantizer reads: a call does not compile. */
#define forest_quantize forest_has_no_quantize_as_float_is_not_32_bits_wide_here
#endif

/* On AVR, constants are read from flash memory by functions of their own. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define FOREST_FLASH PROGMEM
#define FOREST_READ8(at) pgm_read_byte(at)
#define FOREST_READ16(at) pgm_read_word(at)
#define FOREST_READ32(at) pgm_read_dword(at)
#define FOREST_READ64(at) ((uint64_t)pgm_read_dword(at) | (uint64_t)pgm_read_dword((const char *)(at) + 4) << 32)
#else
#define FOREST_FLASH
#define FOREST_READ8(at) (*(at))
#define FOREST_READ16(at) (*(at))
#define FOREST_READ32(at) (*(at))
#define FOREST_READ64(at) (*(at))
#endif

static inline int8_t forest_tree_0(const forest_word *x)
{
    if (x[0] < 2113) {
        return 0;
    }
    return 1;
}

/* Scores: integers, each worth FOREST_SCALE. */
static inline void forest_scores(const forest_word x[FOREST_INPUTS], int8_t scores[FOREST_OUTPUTS])
{
    scores[0] = 0;
    scores[0] = (int8_t)(scores[0] + forest_tree_0(x));
}

/* Index of the class, 0 to 1. */
static inline uint8_t forest_predict(const forest_word x[FOREST_INPUTS])
{
    int8_t scores[1];
    forest_scores(x, scores);
    return (uint8_t)(scores[0] >= 1);
}

/* The classes of `count` rows, one after the other in x. */
static inline void forest_predict_batch(const forest_word *x, uint32_t count, uint8_t *labels)
{
    while (count > 0u) {
        *labels = forest_predict(x);
        labels++;
        x += FOREST_INPUTS;
        count--;
    }
}

/* The scores of `count` rows, one after the other in x. */
static inline void forest_scores_batch(const forest_word *x, uint32_t count, int8_t *scores)
{
    while (count > 0u) {
        forest_scores(x, scores);
        scores += FOREST_OUTPUTS;
        x += FOREST_INPUTS;
        count--;
    }
}

/* The class's own label, as the model was trained with. */
static inline int64_t forest_label(uint8_t index)
{
    static const int64_t labels[2] FOREST_FLASH = {
        0,
        1
    };
    return (int64_t)FOREST_READ64(labels + index);
}

#endif
