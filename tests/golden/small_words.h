/* small_model: 2 trees, 10 nodes
 * Written by forestc; change the model and compile again rather than this file.
 * C99, no heap, no floating-point arithmetic, no library calls.
 *
 * x: the features' words, in this order:
 *   x[0] a_b: uint8: floor(float32(value)), saturated to 0..255; 90.0 becomes 90
 *   x[1] finish: int6: floor(float32(value)), saturated to -32..30, 31 means missing; -7.0 becomes -7
 *   x[2] 1st: category<5>: the category's code, 5 for any that is not 0..4; 1.0 becomes 1
 */
#ifndef FORESTC_SMALL_MODEL_H
#define FORESTC_SMALL_MODEL_H

#include <float.h>
#include <stdint.h>

/* Stops the compiler where a condition does not hold. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define SMALL_MODEL_ASSERT(condition, name) static_assert(condition, #name)
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SMALL_MODEL_ASSERT(condition, name) _Static_assert(condition, #name)
#else
#define SMALL_MODEL_ASSERT(condition, name) typedef char name[(condition) ? 1 : -1]
#endif

#define SMALL_MODEL_INPUTS 3
#define SMALL_MODEL_COLUMNS 4
#define SMALL_MODEL_OUTPUTS 1
#define SMALL_MODEL_CLASSES 2
/* A score is worth this much in the model's own units. */
#define SMALL_MODEL_SCALE 0.25

/* The type of x's elements. Use this name: after another training it may stand for another type. */
typedef int16_t small_model_word;

/* Places of the features in x. */
enum small_model_input {
    SMALL_MODEL_X0_A_B = 0,
    SMALL_MODEL_X1_FINISH = 1,
    SMALL_MODEL_X2_1ST = 2
};

SMALL_MODEL_ASSERT(sizeof(int16_t) == 2u, small_model_int16_t_has_16_bits);
SMALL_MODEL_ASSERT(sizeof(int8_t) == 1u, small_model_int8_t_has_8_bits);
SMALL_MODEL_ASSERT(sizeof(uint8_t) == 1u, small_model_uint8_t_has_8_bits);
SMALL_MODEL_ASSERT(SMALL_MODEL_X2_1ST + 1 == SMALL_MODEL_INPUTS, small_model_inputs_are_all_there);

#if FLT_RADIX == 2 && FLT_MANT_DIG == 24 && FLT_MIN_EXP == -125 && FLT_MAX_EXP == 128

SMALL_MODEL_ASSERT(sizeof(float) == sizeof(int32_t), small_model_float_has_32_bits_else_use_c_quantizer_none);

/* The bits of a value of a row. From here on integers are enough. */
static inline uint32_t small_model_row_bits(const float *value)
{
    union { float f; uint32_t u; } u;
    u.f = *value;
    return u.u;
}

/* floor(value * 2^fraction), saturated to -below..high; `absent` of a NaN. */
static inline int32_t small_model_fixed(uint32_t bits, int fraction, uint32_t below, uint32_t high, int32_t absent)
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

/* The code of a category: 0..count - 1, `count` for any other value, `absent` of a NaN. */
static inline int32_t small_model_code(uint32_t bits, uint32_t count, int32_t absent)
{
    const int32_t code = small_model_fixed(bits, 0, 1u, count, absent);
    const int32_t above = small_model_fixed(bits ^ UINT32_C(0x80000000), 0, count, 1u, -absent);
    return (code < 0 || above != -code) ? (int32_t)count : code;
}

/* A row's words, as the model was trained on its columns. A NaN where the model takes none gets the highest word. */
static inline void small_model_quantize(const float row[SMALL_MODEL_COLUMNS], small_model_word x[SMALL_MODEL_INPUTS])
{
    x[0] = (int16_t)small_model_fixed(small_model_row_bits(&row[0]), 0, UINT32_C(0), UINT32_C(255), 255);
    x[1] = (int16_t)small_model_fixed(small_model_row_bits(&row[2]), 0, UINT32_C(32), UINT32_C(30), 31);
    x[2] = (int16_t)small_model_code(small_model_row_bits(&row[3]), UINT32_C(5), 5);
}

#else
/* Here float is not the 32-bit float of IEEE 754, whose bits the quantizer reads: a call does not compile. */
#define small_model_quantize small_model_has_no_quantize_as_float_is_not_32_bits_wide_here
#endif

static inline int8_t small_model_tree_0(const small_model_word *x)
{
    if (x[0] >= 90) {
        return 5;
    }
    if (x[1] < -7 || x[1] == 31) {
        return 0;
    }
    return 7;
}

static inline int8_t small_model_tree_1(const small_model_word *x)
{
    if (!(x[2] == 1 || x[2] == 4)) {
        return 2;
    }
    if (x[0] < 90) {
        return 0;
    }
    return -1;
}

/* Scores: integers, each worth SMALL_MODEL_SCALE. */
static inline void small_model_scores(const small_model_word x[SMALL_MODEL_INPUTS], int8_t scores[SMALL_MODEL_OUTPUTS])
{
    scores[0] = -3;
    scores[0] = (int8_t)(scores[0] + small_model_tree_0(x));
    scores[0] = (int8_t)(scores[0] + small_model_tree_1(x));
}

/* Index of the class, 0 to 1. */
static inline uint8_t small_model_predict(const small_model_word x[SMALL_MODEL_INPUTS])
{
    int8_t scores[1];
    small_model_scores(x, scores);
    return (uint8_t)(scores[0] >= 2);
}

/* The classes of `count` rows, one after the other in x. */
static inline void small_model_predict_batch(const small_model_word *x, uint32_t count, uint8_t *labels)
{
    while (count > 0u) {
        *labels = small_model_predict(x);
        labels++;
        x += SMALL_MODEL_INPUTS;
        count--;
    }
}

/* The scores of `count` rows, one after the other in x. */
static inline void small_model_scores_batch(const small_model_word *x, uint32_t count, int8_t *scores)
{
    while (count > 0u) {
        small_model_scores(x, scores);
        scores += SMALL_MODEL_OUTPUTS;
        x += SMALL_MODEL_INPUTS;
        count--;
    }
}

/* The class's own label, as the model was trained with. */
static inline const char *small_model_label(uint8_t index)
{
    static const char *const labels[2] = {
        "no",
        "yes"
    };
    return labels[index];
}

/* 2^-(distance * rate / 2^shift) in steps of 2^-31; 0 past the limit. */
static inline uint32_t small_model_power(uint64_t distance, uint64_t rate, unsigned int shift, uint64_t limit)
{
    static const uint32_t table[32] = {
UINT32_C(2147483648), UINT32_C(2101467502), UINT32_C(2056437387), UINT32_C(2012372174),
UINT32_C(1969251188), UINT32_C(1927054196), UINT32_C(1885761398), UINT32_C(1845353420),
UINT32_C(1805811301), UINT32_C(1767116489), UINT32_C(1729250827), UINT32_C(1692196547),
UINT32_C(1655936265), UINT32_C(1620452965), UINT32_C(1585730000), UINT32_C(1551751076),
UINT32_C(1518500250), UINT32_C(1485961921), UINT32_C(1454120821), UINT32_C(1422962010),
UINT32_C(1392470869), UINT32_C(1362633090), UINT32_C(1333434672), UINT32_C(1304861917),
UINT32_C(1276901417), UINT32_C(1249540052), UINT32_C(1222764986), UINT32_C(1196563654),
UINT32_C(1170923762), UINT32_C(1145833280), UINT32_C(1121280436), UINT32_C(1097253708)
    };
    const uint64_t one = UINT64_C(0x100000000);
    uint64_t t;
    uint64_t y;
    uint64_t power;
    unsigned int whole;
    if (distance > limit) {
        return 0u;
    }
    t = distance * rate;
    whole = (unsigned int)(t >> shift);
    t = shift >= 32u ? t >> (shift - 32u) : t << (32u - shift);
    y = ((t & 0x7FFFFFFu) * UINT32_C(2977044472)) >> 32;  /* times ln 2; then e^-y as a series */
    power = one - (y >> 2);
    power = one - ((y * power) >> 32) / 3u;
    power = one - ((y * power) >> 33);
    power = one - ((y * power) >> 32);
    power *= table[(t >> 27) & 31u];
    return (uint32_t)((power + (UINT64_C(1) << (31u + whole))) >> (32u + whole));
}

static inline uint64_t small_model_distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* How likely each class is, in steps of 4.656612873077393e-10.
 * Off from the model's link of the same scores by at most 1.7e-09. */
#define SMALL_MODEL_PROBABILITIES 2
#define SMALL_MODEL_PROBABILITY_STEP 4.656612873077393e-10
static inline void small_model_probabilities(const small_model_word x[SMALL_MODEL_INPUTS], uint32_t out[SMALL_MODEL_PROBABILITIES])
{
    int8_t scores[SMALL_MODEL_OUTPUTS];
    uint32_t p;
    small_model_scores(x, scores);
    p = small_model_power(small_model_distance(scores[0], 0), UINT64_C(396564993198), 40u, UINT64_C(88));
    p = (uint32_t)((UINT64_C(4611686018427387904) + ((UINT64_C(2147483648) + p) >> 1)) / (UINT64_C(2147483648) + p));
    p = scores[0] < 0 ? UINT32_C(2147483648) - p : p;
    out[0] = (UINT32_C(2147483648) - p);
    out[1] = p;
}

/* The same for `count` rows, one after the other in x. */
static inline void small_model_probabilities_batch(const small_model_word *x, uint32_t count, uint32_t *out)
{
    while (count > 0u) {
        small_model_probabilities(x, out);
        out += 2;
        x += SMALL_MODEL_INPUTS;
        count--;
    }
}

#endif
