// The part of Boost.Beast that is no template, which BOOST_BEAST_SEPARATE_COMPILATION leaves out of
// the other files.
#include <boost/beast/src.hpp>
