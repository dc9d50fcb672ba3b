# cmake -DBIN=... -DOUT=... -DVERSION=... -DPROGRAMS=... -P: manual pages of the programs in BIN, of what these say with
# --help. Run by cmake --install; programs that were built for another machine get none.
file(REMOVE_RECURSE "${OUT}")
file(MAKE_DIRECTORY "${OUT}")

# Of a program, or of a command of it: crema-predict.1.
function(write_page program command)
  execute_process(COMMAND "${BIN}/${program}" ${command} --help OUTPUT_VARIABLE help ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    return()
  endif()
  string(JOIN "-" name ${program} ${command})
  # What roff would take for its own.
  string(REPLACE "\\" "\\e" text "${help}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" text "${text}")
  string(FIND "${text}" "\n\nusage: " usage)
  string(SUBSTRING "${text}" 0 ${usage} summary)
  string(REGEX REPLACE "^(crema |[^:]*: )" "" summary "${summary}")
  math(EXPR usage "${usage} + 9")
  string(SUBSTRING "${text}" ${usage} -1 text)
  string(REGEX REPLACE "\n\nflags:\n" "\n.fi\n.SH OPTIONS\n.nf\n" text "${text}")
  string(REGEX REPLACE "\n\ncommands:\n" "\n.fi\n.SH COMMANDS\n.nf\n" text "${text}")
  string(REGEX REPLACE "(\n\\.SH [A-Z]+\n\\.nf\n([^\n]+\n)+)\n" "\\1.fi\n.SH DESCRIPTION\n.nf\n" text "${text}")
  string(TOUPPER "${name}" title)
  file(WRITE "${OUT}/${name}.1" ".TH ${title} 1 \"\" \"crema ${VERSION}\"\n.SH NAME\n${name} \\- ${summary}\n"
       ".SH SYNOPSIS\n.nf\n${text}.fi\n")
endfunction()

foreach(program IN LISTS PROGRAMS)
  write_page(${program} "")
endforeach()
execute_process(COMMAND "${BIN}/crema" --help OUTPUT_VARIABLE help ERROR_QUIET)
string(REGEX MATCHALL "\n  [a-z_]+   *[a-z]" lines "${help}")
foreach(line IN LISTS lines)
  string(REGEX MATCH "[a-z_]+" command "${line}")
  write_page(crema ${command})
endforeach()
