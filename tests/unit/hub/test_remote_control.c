/* The rows of test_hub_control.c, for engines of another process' hub. */
#define KYMO_TESTS_REMOTE
#include "test_hub_control.c"
