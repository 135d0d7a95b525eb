#ifndef KYMO_TESTS_CTOR_H
#define KYMO_TESTS_CTOR_H

#include "target.h"

#define CTOR_CALLS_BEFORE 100
#define CTOR_CALLS_AFTER 10
#define CTOR_SUM 14950 /* of 3 * i + 1 for i below CTOR_CALLS_BEFORE */

int ctor_work(int n);
int ctor_sum(void);

#endif
