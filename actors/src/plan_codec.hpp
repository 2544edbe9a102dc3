#pragma once

// A plan as its schema struct. Reading checks enumerators and sizes; whether the plan makes sense
// for a cluster is for partition::validate().

#include "holmes/base/result.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/wire/holmes.capnp.h"

namespace holmes::actors {

void write_plan(const partition::Plan& plan, schema::Plan::Builder out);
Result<partition::Plan> read_plan(schema::Plan::Reader in);

}  // namespace holmes::actors
