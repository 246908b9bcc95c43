# Programs that call each other would load fifty small libraries of Abseil and gRPC. Linked into the
# program, they halve the time in which a command starts (docs/adr/0064-libraries-linked-in.md).

# pelab_link_statically(NAMES): imported libraries whose target matches the regular expression NAMES
# are linked from their archive, where the system has one. Call it where find_package was called.
function(pelab_link_statically names)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER targets INCLUDE REGEX ${names})
  foreach(target IN LISTS targets)
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    set(properties IMPORTED_LOCATION)
    foreach(configuration IN LISTS configurations)
      list(APPEND properties IMPORTED_LOCATION_${configuration})
    endforeach()
    foreach(property IN LISTS properties)
      get_target_property(path ${target} ${property})
      string(REGEX REPLACE "\\.so[0-9.]*$" ".a" archive "${path}")
      if(path MATCHES "\\.so" AND EXISTS ${archive})
        set_target_properties(${target} PROPERTIES ${property} ${archive})
      endif()
    endforeach()
  endforeach()
endfunction()
