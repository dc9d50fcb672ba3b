# Completion of crema's programs in bash: commands, flags, and values that are files or choices. All of it is what the
# program says of itself with --help. Sourced by bash-completion where it is installed, or with `source`.

# Names that begin with $1, as files; $2 stands before each.
_crema_files() {
  local name=${1#[\'\"]}
  name=${name//\\/}
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen "${3:--f}" -P "$2" -- "${name/#\~\//$HOME/}")
  compopt -o filenames 2>/dev/null
}

_crema_words() { # of those behind $1 the ones that begin with it
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "${*:2}" -- "$1")
}

# $1: what the help shows for a value, as FILE[,FILE], text|json|csv or FILE|auto; $2: its beginning.
_crema_value() {
  local kinds kind before=''
  [[ $1 == *\[,* && $2 == *,* ]] && before=${2%,*},
  IFS='|' read -ra kinds <<<"$1"
  for kind in "${kinds[@]}"; do
    case ${kind%%\[*} in
      FILE | FILE.* | DB | PATH | PREFIX) _crema_files "${2#"$before"}" "$before" ;;
      DIR | FOLDER) _crema_files "${2#"$before"}" "$before" -d ;;
      NAME | ID | [[:upper:]] | *[^[:alnum:]]*) ;; # stands for something else
      *) ((${#kinds[@]} > 1)) || [[ $kind != *[[:upper:]]* ]] && _crema_words "$2" "$kind" ;;
    esac
  done
}

_crema() {
  local program=${1/#\~\//$HOME/} current=${COMP_WORDS[COMP_CWORD]} command=() words help flag usage word
  COMPREPLY=()
  # Readline may take --flag=value for three words.
  words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  if [[ $current == = ]]; then
    current=
  elif ((${#words[@]})) && [[ ${words[-1]} == = ]]; then
    unset 'words[-1]'
  fi
  help=$("$program" --help 2>/dev/null) || return
  if [[ $help == *$'\ncommands:\n'* ]]; then
    if ((!${#words[@]})) || [[ ${#words[@]} == 1 && ${words[0]} == help ]]; then
      help=${help#*$'\ncommands:\n'}
      while read -r word _ && [[ $word ]]; do _crema_words "$current" "$word"; done <<<"$help"
      ((${#words[@]})) || _crema_words "$current" help --help --version
      return
    fi
    command=("${words[0]}")
    words=("${words[@]:1}")
    help=$("$program" "${command[@]}" --help 2>/dev/null) || return
  fi

  # Every flag with what its value is.
  local -A values=()
  while IFS= read -r word; do
    [[ $word =~ ^'  --'([a-z_]+)(=([^ ]+))?(' '|$) ]] && values[${BASH_REMATCH[1]}]=${BASH_REMATCH[3]}
  done <<<"$help"

  local whole='' i
  if [[ $current == -*=* ]]; then
    whole=${current%%=*}=
    words+=("${whole%=}")
    current=${current#*=}
  fi
  if ((${#words[@]})) && [[ ${words[-1]} == -* ]]; then
    flag=${words[-1]#-}
    flag=${flag#-}
    if [[ ${values[${flag:-0}]} ]]; then
      [[ $flag == model && ${values[$flag]} == NAME* ]] && _crema_models "$program" "$current"
      _crema_value "${values[$flag]}" "$current"
      for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=$whole${COMPREPLY[i]}; done
      return
    fi
  fi

  usage=${help#*$'\nusage: '}
  usage=${usage%%$'\n'*}
  usage=${usage#* }
  [[ ${command[*]} ]] && usage=${usage#"${command[0]}"}
  usage=${usage# }
  if [[ $current != -* ]]; then
    if [[ $usage == [[:lower:]]* ]]; then # what is to be done comes first
      if ((!${#words[@]})); then
        IFS='|' read -ra words <<<"$usage"
        for word in "${words[@]}"; do _crema_words "$current" "${word%% *}"; done
        return
      fi
      [[ ${command[*]} == zoo && ${#words[@]} == 1 ]] && _crema_models "$program" "$current" && return
    fi
    read -ra words <<<"$usage"
    for word in "${words[@]}"; do
      if [[ $word == *[[:upper:]]* && $word != *--* ]]; then
        _crema_files "$current"
        return
      fi
    done
  fi

  for flag in "${!values[@]}" help; do
    _crema_words "$current" "--$flag${values[$flag]:+=}"
  done
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}

_crema_models() { # of the zoo; $1: the program, $2: the beginning of a name
  local name
  while read -r name _ && [[ $name ]]; do
    [[ $name != name && $name =~ ^[[:alnum:]][[:alnum:]_.-]*$ ]] && _crema_words "$2" "$name"
  done < <("$1" zoo list 2>/dev/null)
}

complete -F _crema @crema_programs@
