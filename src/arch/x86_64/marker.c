#include "arch/marker.h"

const uint8_t kymo_marker_nop[KYMO_JUMP_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
