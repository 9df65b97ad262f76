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

#include <stdint.h>

#define SMALL_MODEL_INPUTS 3
#define SMALL_MODEL_OUTPUTS 1
#define SMALL_MODEL_CLASSES 2
/* A score is worth this much in the model's own units. */
#define SMALL_MODEL_SCALE 0.25

/* Places of the features in x. */
enum small_model_input {
    SMALL_MODEL_X0_A_B = 0,
    SMALL_MODEL_X1_FINISH = 1,
    SMALL_MODEL_X2_1ST = 2
};

static inline int16_t small_model_tree_0(const int16_t *x)
{
    if (x[0] >= 90) {
        return 5;
    }
    if (x[1] < -7 || x[1] == 31) {
        return 0;
    }
    return 7;
}

static inline int16_t small_model_tree_1(const int16_t *x)
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
static inline void small_model_scores(const int16_t x[SMALL_MODEL_INPUTS], int16_t scores[SMALL_MODEL_OUTPUTS])
{
    scores[0] = -3;
    scores[0] = (int16_t)(scores[0] + small_model_tree_0(x));
    scores[0] = (int16_t)(scores[0] + small_model_tree_1(x));
}

/* Index of the class, 0 to 1. */
static inline uint8_t small_model_predict(const int16_t x[SMALL_MODEL_INPUTS])
{
    int16_t scores[1];
    small_model_scores(x, scores);
    return (uint8_t)(scores[0] >= 2);
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

#endif
