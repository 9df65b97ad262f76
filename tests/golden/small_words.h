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

#define SMALL_MODEL_INPUTS 3
#define SMALL_MODEL_COLUMNS 4
#define SMALL_MODEL_OUTPUTS 1
#define SMALL_MODEL_CLASSES 2
/* A score is worth this much in the model's own units. */
#define SMALL_MODEL_SCALE 0.25

/* The type of x's elements. Use this name: after another training it may stand for another type. */
typedef int16_t small_model_word;

/* Places of the features in x. */
enum {
    SMALL_MODEL_X0_A_B = 0,
    SMALL_MODEL_X1_FINISH = 1,
    SMALL_MODEL_X2_1ST = 2
};

/* An array of negative size here: the compiler's types have other sizes. */
enum { small_model_int16_t_has_16_bits = sizeof(char[(sizeof(int16_t) == 2u) ? 1 : -1]) };
enum { small_model_int8_t_has_8_bits = sizeof(char[(sizeof(int8_t) == 1u) ? 1 : -1]) };
enum { small_model_uint8_t_has_8_bits = sizeof(char[(sizeof(uint8_t) == 1u) ? 1 : -1]) };
enum { small_model_inputs_are_all_there = sizeof(char[((SMALL_MODEL_X2_1ST + 1) == SMALL_MODEL_INPUTS) ? 1 : -1]) };

/* 1 if all words are in their ranges, else 0. Any words have an answer: a word out of its range is compared as it is.
 * With a macro SMALL_MODEL_ASSERT, such as assert of <assert.h>, small_model_scores asserts this function's result. */
static inline int small_model_in_range(const small_model_word x[SMALL_MODEL_INPUTS])
{
    int inside = 1;
    inside = (x[0] >= 0) ? inside : 0;
    inside = (x[0] <= 255) ? inside : 0;
    inside = (x[1] >= -32) ? inside : 0;
    inside = (x[1] <= 31) ? inside : 0;
    inside = (x[2] >= 0) ? inside : 0;
    inside = (x[2] <= 5) ? inside : 0;
    return inside;
}

#if FLT_RADIX == 2 && FLT_MANT_DIG == 24 && FLT_MIN_EXP == -125 && FLT_MAX_EXP == 128

enum { small_model_float_has_32_bits_else_use_c_quantizer_none = sizeof(char[(sizeof(float) == sizeof(int32_t)) ? 1 : -1]) };

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
    const uint32_t size = bits & UINT32_C(2147483647);
    const uint32_t up = (size != bits) ? 1u : 0u;  /* a negative value's size is rounded up */
    const uint32_t most = (up != 0u) ? below : high;
    uint32_t steps = size & UINT32_C(8388607);
    int shift = (int)(size >> 23);
    int32_t word = absent;
    if (size <= UINT32_C(2139095040)) {
        if (shift > 0) {
            steps |= UINT32_C(8388608);
        } else {
            shift = 1;
        }
        shift = (size == UINT32_C(2139095040)) ? 32 : ((shift + fraction) - 150);
        if (steps != 0u) {
            if (shift >= 0) {
                steps = ((shift < 32) && (steps <= (most >> (uint8_t)shift))) ? (steps << (uint8_t)shift) : most;
            } else {
                shift = -shift;
                steps = ((shift < 32) ? ((steps - up) >> (uint8_t)shift) : 0u) + up;
                steps = (steps < most) ? steps : most;
            }
        }
        word = (int32_t)steps;
        if ((up != 0u) && (steps != 0u)) {
            steps--;
            word = -1 - (int32_t)steps;
        }
    }
    return word;
}

/* The code of a category: 0..count - 1, `count` for any other value, `absent` of a NaN. */
static inline int32_t small_model_code(uint32_t bits, uint32_t count, int32_t absent)
{
    const int32_t code = small_model_fixed(bits, 0, 1u, count, absent);
    const int32_t above = small_model_fixed(bits ^ 0x80000000u, 0, count, 1u, -absent);
    return ((code < 0) || (above != -code)) ? (int32_t)count : code;
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
struct small_model_has_no_quantize_as_float_is_not_32_bits_wide_here;
void small_model_quantize(const struct small_model_has_no_quantize_as_float_is_not_32_bits_wide_here *row);
#endif

static inline int8_t small_model_tree_0(const small_model_word *x)
{
    int8_t leaf;
    if (x[0] >= 90) {
        leaf = 5;
    } else if ((x[1] < -7) || (x[1] == 31)) {
        leaf = 0;
    } else {
        leaf = 7;
    }
    return leaf;
}

static inline int8_t small_model_tree_1(const small_model_word *x)
{
    int8_t leaf;
    if (!((x[2] == 1) || (x[2] == 4))) {
        leaf = 2;
    } else if (x[0] < 90) {
        leaf = 0;
    } else {
        leaf = -1;
    }
    return leaf;
}

/* Scores: integers, each worth SMALL_MODEL_SCALE. */
static inline void small_model_scores(const small_model_word x[SMALL_MODEL_INPUTS], int8_t scores[SMALL_MODEL_OUTPUTS])
{
#if defined(SMALL_MODEL_ASSERT)
    SMALL_MODEL_ASSERT(small_model_in_range(x) != 0);
#endif
    scores[0] = -3;
    scores[0] = (int8_t)(scores[0] + small_model_tree_0(x));
    scores[0] = (int8_t)(scores[0] + small_model_tree_1(x));
}

/* Index of the class, 0 to 1. */
static inline uint8_t small_model_predict(const small_model_word x[SMALL_MODEL_INPUTS])
{
    int8_t scores[1];
    small_model_scores(x, scores);
    return (uint8_t)((scores[0] >= 2) ? 1u : 0u);
}

/* The classes of `count` rows, one after the other in x. */
static inline void small_model_predict_batch(const small_model_word *x, uint32_t count, uint8_t *labels)
{
    const small_model_word *row = x;
    uint8_t *out = labels;
    uint32_t left = count;
    while (left > 0u) {
        *out = small_model_predict(row);
        out = &out[1];
        row = &row[SMALL_MODEL_INPUTS];
        left--;
    }
}

/* The scores of `count` rows, one after the other in x. */
static inline void small_model_scores_batch(const small_model_word *x, uint32_t count, int8_t *scores)
{
    const small_model_word *row = x;
    int8_t *out = scores;
    uint32_t left = count;
    while (left > 0u) {
        small_model_scores(row, out);
        out = &out[SMALL_MODEL_OUTPUTS];
        row = &row[SMALL_MODEL_INPUTS];
        left--;
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

/* 2^-(product / 2^shift) in steps of 2^-31. */
static inline uint32_t small_model_exponential(uint64_t product, unsigned int shift)
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
    const uint64_t one = 0x100000000u;
    const unsigned int whole = (unsigned int)(product >> shift);
    const unsigned int more = shift - 32u;
    const unsigned int less = 32u - shift;
    const uint64_t t = (shift >= 32u) ? (product >> more) : (product << less);
    const uint64_t y = ((t & 0x7FFFFFFu) * UINT32_C(2977044472)) >> 32;  /* times ln 2; then e^-y as a series */
    uint64_t power = one - (y >> 2);
    power = one - (((y * power) >> 32) / 3u);
    power = one - ((y * power) >> 33);
    power = one - ((y * power) >> 32);
    power *= table[(t >> 27) & 31u];
    return (uint32_t)((power + (UINT64_C(1) << (31u + whole))) >> (32u + whole));
}

/* 2^-(distance * rate / 2^shift) in steps of 2^-31; 0 past the limit. */
static inline uint32_t small_model_power(uint64_t distance, uint64_t rate, unsigned int shift, uint64_t limit)
{
    return (distance > limit) ? 0u : small_model_exponential(distance * rate, shift);
}

static inline uint64_t small_model_distance(int64_t a, int64_t b)
{
    return (a > b) ? ((uint64_t)a - (uint64_t)b) : ((uint64_t)b - (uint64_t)a);
}

/* How likely each class is, in steps of 4.656612873077393e-10.
 * Off from the model's link of the same scores by at most 1.7e-09. */
#define SMALL_MODEL_PROBABILITIES 2
#define SMALL_MODEL_PROBABILITY_STEP 4.656612873077393e-10
#define SMALL_MODEL_PROBABILITY_FRACTION_BITS 31
static inline void small_model_probabilities(const small_model_word x[SMALL_MODEL_INPUTS], uint32_t out[SMALL_MODEL_PROBABILITIES])
{
    int8_t scores[SMALL_MODEL_OUTPUTS];
    uint32_t p;
    small_model_scores(x, scores);
    p = small_model_power(small_model_distance(scores[0], 0), UINT64_C(396564993198), 40u, UINT64_C(88));
    p = (uint32_t)((UINT64_C(4611686018427387904) + ((UINT64_C(2147483648) + p) >> 1)) / (UINT64_C(2147483648) + p));
    p = (scores[0] < 0) ? (UINT32_C(2147483648) - p) : p;
    out[0] = (UINT32_C(2147483648) - p);
    out[1] = p;
}

/* The same for `count` rows, one after the other in x. */
static inline void small_model_probabilities_batch(const small_model_word *x, uint32_t count, uint32_t *out)
{
    const small_model_word *row = x;
    uint32_t *to = out;
    uint32_t left = count;
    while (left > 0u) {
        small_model_probabilities(row, to);
        to = &to[2];
        row = &row[SMALL_MODEL_INPUTS];
        left--;
    }
}

#endif
