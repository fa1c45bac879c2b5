/*!
 * \file core/round_trip.h
 * \brief How far the cores are from each other, by the time that a cache line takes between them.
 *
 * A host gives a virtual machine other cores from one second to the next: two that share a cache,
 * two that do not, or two threads of one core. What runs on several threads takes up to twice as
 * long then, and nothing else inside the machine shows why.
 */
#ifndef TLP_TVM_CORE_ROUND_TRIP_H_
#define TLP_TVM_CORE_ROUND_TRIP_H_

namespace tlp_tvm {

/*!
 * \brief Sends a cache line from the first CPU that this thread may run on to each of the next and
 * back, for half a millisecond each where both are idle.
 * \param threads of how many CPUs; 0 for all.
 * \return Seconds there and back to the one that is the farthest, the lowest of several timings; 0
 * where there is no second CPU, or the system grants no thread for it.
 */
double RoundTrip(int threads);

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_ROUND_TRIP_H_
