# find_package(pt2wire) defines
#
#   pt2wire::pt2wire   the headers; with zlib, which deflated records need, where CMake finds it
#   pt2wire::thrift    the same and Apache's libthrift, for pt2wire/thrift.h; where libthrift and Boost's headers are found
#
# find_package(pt2wire COMPONENTS thrift) fails without libthrift. -DPT2WIRE_WITH_ZLIB=ON demands zlib, OFF does without.
#
# `pt2wire paths --cmake` prints the folder of this file, for -Dpt2wire_DIR. It finds the headers from where it lies.

get_filename_component(_pt2wire_package "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(_pt2wire_includes "${_pt2wire_package}/include")
# In an installed package the generated headers lie below it, in the source tree beside it.
foreach(_pt2wire_generated "${_pt2wire_package}/generated/include" "${_pt2wire_package}/../generated/include")
  if(EXISTS "${_pt2wire_generated}/pt2wire/schema.h")
    get_filename_component(_pt2wire_generated "${_pt2wire_generated}" ABSOLUTE)
    list(APPEND _pt2wire_includes "${_pt2wire_generated}")
    break()
  endif()
endforeach()
list(LENGTH _pt2wire_includes _pt2wire_count)
if(NOT _pt2wire_count EQUAL 2)
  set(pt2wire_FOUND FALSE)
  set(pt2wire_NOT_FOUND_MESSAGE "the generated headers of pt2wire are missing: install the package pt2wire again")
  return()
endif()

if(NOT TARGET pt2wire::pt2wire)
  add_library(pt2wire::pt2wire INTERFACE IMPORTED)
  set_target_properties(pt2wire::pt2wire PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_pt2wire_includes}"
    INTERFACE_COMPILE_FEATURES cxx_std_17)

  if(NOT DEFINED PT2WIRE_WITH_ZLIB)
    find_package(ZLIB QUIET)
  elseif(PT2WIRE_WITH_ZLIB)
    include(CMakeFindDependencyMacro)
    find_dependency(ZLIB)
  endif()
  if(ZLIB_FOUND AND (NOT DEFINED PT2WIRE_WITH_ZLIB OR PT2WIRE_WITH_ZLIB))
    set_target_properties(pt2wire::pt2wire PROPERTIES
      INTERFACE_LINK_LIBRARIES ZLIB::ZLIB
      INTERFACE_COMPILE_DEFINITIONS PT2WIRE_WITH_ZLIB=1)
  endif()
endif()

if(NOT TARGET pt2wire::thrift)
  find_path(PT2WIRE_THRIFT_INCLUDE_DIR thrift/Thrift.h)
  find_path(PT2WIRE_BOOST_INCLUDE_DIR boost/version.hpp)  # libthrift's headers include Boost's
  find_library(PT2WIRE_THRIFT_LIBRARY thrift)
  mark_as_advanced(PT2WIRE_THRIFT_INCLUDE_DIR PT2WIRE_BOOST_INCLUDE_DIR PT2WIRE_THRIFT_LIBRARY)
  if(PT2WIRE_THRIFT_INCLUDE_DIR AND PT2WIRE_BOOST_INCLUDE_DIR AND PT2WIRE_THRIFT_LIBRARY)
    add_library(pt2wire::thrift INTERFACE IMPORTED)
    set_target_properties(pt2wire::thrift PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${PT2WIRE_THRIFT_INCLUDE_DIR};${PT2WIRE_BOOST_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "pt2wire::pt2wire;${PT2WIRE_THRIFT_LIBRARY}")
  endif()
endif()

foreach(_pt2wire_component IN LISTS pt2wire_FIND_COMPONENTS)
  if(TARGET pt2wire::${_pt2wire_component})
    set(pt2wire_${_pt2wire_component}_FOUND TRUE)
  elseif(pt2wire_FIND_REQUIRED_${_pt2wire_component})
    set(pt2wire_FOUND FALSE)
    set(pt2wire_NOT_FOUND_MESSAGE
      "no component ${_pt2wire_component}: there is thrift, which needs libthrift (PT2WIRE_THRIFT_LIBRARY, PT2WIRE_THRIFT_INCLUDE_DIR) and Boost's headers (PT2WIRE_BOOST_INCLUDE_DIR)")
  endif()
endforeach()
