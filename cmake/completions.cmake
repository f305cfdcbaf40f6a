# What lets shells complete weir's words, where they look for it.  weir prints it, so it must
# be one that runs here; what was built for another machine prints it there.
if(CMAKE_CROSSCOMPILING)
  return()
endif()

# zsh of Debian has a place for packages, and looks at another one below /usr/local.
set(zsh zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh zsh/vendor-completions)
endif()

set(completions ${PROJECT_BINARY_DIR}/completions)
set(made "")
foreach(place bash:bash-completion/completions/weir zsh:${zsh}/_weir
              fish:fish/vendor_completions.d/weir.fish)
  string(REGEX REPLACE ":.*" "" shell ${place})
  string(REGEX REPLACE ".*:" "" file ${place})
  get_filename_component(directory ${file} DIRECTORY)
  get_filename_component(name ${file} NAME)
  set(result ${completions}/${file})
  add_custom_command(OUTPUT ${result}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}/${directory}
    COMMAND weir-command completions ${shell} > ${result}
    DEPENDS weir-command VERBATIM)
  install(FILES ${result} DESTINATION ${CMAKE_INSTALL_DATADIR}/${directory})
  list(APPEND made ${result})
endforeach()
add_custom_target(completions ALL DEPENDS ${made})
