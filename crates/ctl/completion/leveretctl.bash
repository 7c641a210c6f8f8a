# Completion for bash. Load it with: source <(TOOL completion bash)
_TOOL_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == $'\tfiles' ]]; then
            compopt -o default 2>/dev/null
            COMPREPLY=()
            return
        fi
        COMPREPLY+=("${line%%$'\t'*}")
    done < <(TOOL completion words bash -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _TOOL_complete leveretctl rabbitmqctl rabbitmq-diagnostics leveret leveret-perf
