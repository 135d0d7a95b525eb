/* The rows of test_hub.c, for engines of another process' hub. */
#define KYMO_TESTS_REMOTE
#include "test_hub.c"
