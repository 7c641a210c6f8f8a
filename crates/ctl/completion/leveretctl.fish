# Completion for fish. Load it with: TOOL completion fish | source
function __TOOL_complete
    set -l current (commandline -ct)
    for line in (TOOL completion words fish -- (commandline -opc) "$current" 2>/dev/null)
        if test "$line" = \tfiles
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end
for tool in leveretctl rabbitmqctl rabbitmq-diagnostics leveret leveret-perf
    complete -c $tool -f -a '(__TOOL_complete)'
end
