# The parts of the version in weir/version.h must say what its string says.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/weir/version.h)

foreach(part MAJOR MINOR PATCH)
  file(STRINGS include/weir/version.h line REGEX "^#define WEIR_VERSION_${part} ")
  if(NOT line MATCHES " ${PROJECT_VERSION_${part}}$")
    message(FATAL_ERROR "weir/version.h: WEIR_VERSION_${part} does not fit \"${PROJECT_VERSION}\"")
  endif()
endforeach()
