/* The tests of breakpoints again, through the socket of a hub in another process. */
#define KYMO_TESTS_REMOTE
#include "test_breakpoints.c"
