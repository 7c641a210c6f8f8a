#compdef leveretctl rabbitmqctl rabbitmq-diagnostics leveret leveret-perf
# Completion for zsh. Load it after compinit with: source <(TOOL completion zsh)
_TOOL_complete() {
    local line value
    local -a values displays open_values
    for line in "${(@f)$(TOOL completion words zsh -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        [[ -z $line ]] && continue
        if [[ $line == $'\tfiles' ]]; then
            _files
            return
        fi
        value=${line%%$'\t'*}
        if [[ $value == *[=:] ]]; then
            open_values+=("$value")
            continue
        fi
        values+=("$value")
        if [[ $line == *$'\t'?* ]]; then
            displays+=("$value  -- ${line#*$'\t'}")
        else
            displays+=("$value")
        fi
    done
    (( $#open_values )) && compadd -S '' -a open_values
    (( $#values )) && compadd -l -d displays -a values
}
if [[ $funcstack[1] == _TOOL_complete ]]; then
    _TOOL_complete "$@"
else
    compdef _TOOL_complete leveretctl rabbitmqctl rabbitmq-diagnostics leveret leveret-perf
fi
