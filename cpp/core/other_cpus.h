/*!
 * \file core/other_cpus.h
 * \brief Keeps threads off the CPU that another one runs on.
 *
 * Where few CPUs share a cache, as in a small virtual machine, Linux may look for no idle one when it
 * starts or wakes a thread: it runs beside its caller, on one CPU, while the other has nothing to do,
 * for a tenth of a second and more.
 */
#ifndef TLP_TVM_CORE_OTHER_CPUS_H_
#define TLP_TVM_CORE_OTHER_CPUS_H_

#include <pthread.h>
#include <sched.h>

namespace tlp_tvm {

/*! \brief Where the calling thread may run, but not where it does. */
class OtherCpus {
 public:
  /*! \param here The CPU that the calling thread runs on, of sched_getcpu(). */
  explicit OtherCpus(int here);

  /*! \return Whether there are any. */
  bool some() const { return some_; }

  /*!
   * \brief Confines a thread to them. Does nothing where there are none, as when the caller is
   * confined to one CPU, or on a machine of more CPUs than a set has.
   * \param thread One that does not end meanwhile: in the place of one that has ended, glibc would
   * confine the caller.
   */
  void Take(pthread_t thread) const;

  /*!
   * \brief Starts a thread there, or anywhere where there are none; it is to be joined.
   * \return Whether the system grants one.
   */
  bool Start(pthread_t* thread, void* (*body)(void*), void* data) const;

 private:
  cpu_set_t cpus_{};
  bool some_ = false;
};

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_OTHER_CPUS_H_
