// Derives result, class and arguments from the type of a function pointer.
#pragma once

#include <tuple>
#include <type_traits>

#include "ray/api/object_ref.h"

namespace ray {
namespace internal {

template <class F>
struct FunctionTraits {
  static_assert(!std::is_same<F, F>::value,
                "not a free function, a static member function or a member function");
};

template <class R, class C, class... A>
struct SignatureOf {
  using Result = R;
  using Class = C;  // void for a free or static function.
  using Args = std::tuple<A...>;
  static constexpr bool kIsMethod = !std::is_void<C>::value;
  // Whether the function creates actors: it returns a pointer to a new object.
  static constexpr bool kIsFactory =
      !kIsMethod && std::is_pointer<R>::value && std::is_class<std::remove_pointer_t<R>>::value;
  static constexpr bool kTakesObjectRef = (ObjectRefElement<std::decay_t<A>>::kIsRef || ...);
};

template <class R, class... A>
struct FunctionTraits<R (*)(A...)> : SignatureOf<R, void, A...> {};
template <class R, class... A>
struct FunctionTraits<R (*)(A...) noexcept> : SignatureOf<R, void, A...> {};
template <class R, class C, class... A>
struct FunctionTraits<R (C::*)(A...)> : SignatureOf<R, C, A...> {};
template <class R, class C, class... A>
struct FunctionTraits<R (C::*)(A...) const> : SignatureOf<R, C, A...> {};
template <class R, class C, class... A>
struct FunctionTraits<R (C::*)(A...) noexcept> : SignatureOf<R, C, A...> {};
template <class R, class C, class... A>
struct FunctionTraits<R (C::*)(A...) const noexcept> : SignatureOf<R, C, A...> {};

// Whether an actual argument fits a formal one: it is convertible, or it is a reference to a value
// that can be read as the formal type.
template <class Formal, class Actual>
constexpr bool Fits() {
  using F = std::decay_t<Formal>;
  using A = std::decay_t<Actual>;
  using Element = typename ObjectRefElement<A>::Type;
  if constexpr (!ObjectRefElement<A>::kIsRef || ObjectRefElement<F>::kIsRef) {
    return std::is_convertible<Actual, F>::value;
  } else if constexpr (std::is_void<Element>::value) {
    return false;
  } else {
    constexpr bool numbers = std::is_arithmetic<F>::value && std::is_arithmetic<Element>::value &&
                             !std::is_same<F, bool>::value && !std::is_same<Element, bool>::value;
    return std::is_same<F, Element>::value ||
           (numbers &&
            (std::is_floating_point<F>::value || !std::is_floating_point<Element>::value));
  }
}

template <class Formals, class... Actuals>
struct ArgumentsMatch;
template <class... F, class... A>
struct ArgumentsMatch<std::tuple<F...>, A...> {
  static constexpr bool Check() {
    if constexpr (sizeof...(F) != sizeof...(A)) {
      return false;
    } else {
      return (Fits<F, A>() && ...);
    }
  }
  static constexpr bool value = Check();
};

}  // namespace internal
}  // namespace ray
