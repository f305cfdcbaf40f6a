# Man pages, where scdoc is there to make them.
find_program(SCDOC scdoc)
if(NOT SCDOC)
  return()
endif()

file(GLOB pages CONFIGURE_DEPENDS docs/man/*.[1-9].scd)
set(made "")
foreach(page ${pages})
  get_filename_component(name ${page} NAME)
  string(REGEX REPLACE "\\.scd$" "" name ${name})
  string(REGEX MATCH "[1-9]$" section ${name})
  set(result ${PROJECT_BINARY_DIR}/man/${name})
  add_custom_command(OUTPUT ${result}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND ${SCDOC} < ${page} > ${result}
    DEPENDS ${page} VERBATIM)
  list(APPEND made ${result})
  install(FILES ${result} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
add_custom_target(man ALL DEPENDS ${made})

# Every function has a page, if only one that says which other to show.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/man/aliases)
file(STRINGS docs/man/aliases lines REGEX "^[^#]")
foreach(line ${lines})
  string(REPLACE " " ";" names ${line})
  list(POP_FRONT names page)
  list(REMOVE_ITEM names ${page})
  foreach(name ${names})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/man/${name}.3 CONTENT ".so man3/${page}.3\n")
    install(FILES ${PROJECT_BINARY_DIR}/man/${name}.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
  endforeach()
endforeach()
