// Tells motions on the device: samples of an accelerometer, the features of a window, the forest's answer, and a pause
// after each report. The sensor is an MPU-6050 at the pins of I2C. The library `motion` is the folder c that demo.py
// compiles. Train on windows of your own sensor before you believe an answer.
#include <Wire.h>
#include <motion.h>

#include "windows.h"

static const uint8_t SENSOR = 0x68;              // address on the bus
static const unsigned long SAMPLE_US = 20000ul;  // 50 Hz, as in training
static const unsigned int HOP = SAMPLES / 4;     // new samples between two answers
static const unsigned long COOLDOWN_MS = 2000ul; // no second report for so long
static const int REST = 0;                       // the class that is not reported
static const char *const NAMES[MOTION_CLASSES] = {"rest", "shake", "turn", "walk"};

static int16_t window[SAMPLES][AXES];
static unsigned int filled = 0;
static unsigned long next_sample = 0, last_report = 0;
static bool reported = false;

static void set_register(uint8_t number, uint8_t value)
{
    Wire.beginTransmission(SENSOR);
    Wire.write(number);
    Wire.write(value);
    Wire.endTransmission();
}

static bool read_sample(int16_t sample[AXES])
{
    Wire.beginTransmission(SENSOR);
    Wire.write((uint8_t)0x3B); // the first of six registers, the high byte of x
    if (Wire.endTransmission(false) != 0 || Wire.requestFrom(SENSOR, (uint8_t)(2 * AXES)) != 2 * AXES) {
        return false;
    }
    for (int axis = 0; axis < AXES; axis++) {
        const uint16_t high = (uint16_t)Wire.read();
        const uint16_t low = (uint16_t)Wire.read();
        sample[axis] = (int16_t)(high << 8 | low);
    }
    return true;
}

void setup()
{
    Serial.begin(115200);
    Wire.begin();
    set_register(0x6B, 0x00); // wake up
    set_register(0x1C, 0x08); // 4 g full scale: 8192 steps for 1 g, as in training
    next_sample = micros();
}

void loop()
{
    if ((long)(micros() - next_sample) < 0) {
        return;
    }
    next_sample += SAMPLE_US;
    if (!read_sample(window[filled])) {
        filled = 0; // a window has no gaps
        return;
    }
    if (++filled < SAMPLES) {
        return;
    }
    int16_t x[FEATURES];
    features_of(window, x);
    memmove(window[0], window[HOP], (SAMPLES - HOP) * sizeof window[0]);
    filled = SAMPLES - HOP;
    const int motion = (int)motion_predict(x);
    if (motion == REST || (reported && millis() - last_report < COOLDOWN_MS)) {
        return;
    }
    Serial.println(NAMES[motion]);
    last_report = millis();
    reported = true;
}
