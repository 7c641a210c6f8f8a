#!/bin/sh
# Installs Leveret from the unpacked archive as a service, or a newer version over an older one.
#
#   install.sh            programs, manual pages, completions, configuration, user and unit; starts the service
#   install.sh --remove   stops the service and removes all of it but the configuration, the data, the backups and the user
set -eu

usage() {
    echo "usage: install.sh [--remove]" >&2
    exit 64
}

fail() {
    echo "install.sh: $1" >&2
    exit "$2"
}

PROGRAMS="leveret leveretctl leveret-perf"
LINKS="rabbitmqctl rabbitmq-diagnostics rabbitmq-plugins rabbitmq-queues rabbitmq-streams rabbitmq-upgrade"
UNIT=/etc/systemd/system/leveret.service
# First line of the unit, by which a Debian package that is installed later knows it.
MARK="# Installed by install.sh of the archive."

has_systemd() {
    [ -d /run/systemd/system ]
}

# What both ways do with a manual page or completion: `$1` is the file in the archive, `$2` its place.
documents() {
    for page in man/man*/*; do
        "$1" "$page" "/usr/local/share/$page"
    done
    for program in $PROGRAMS; do
        "$1" completion/leveretctl.bash "/usr/share/bash-completion/completions/$program"
        "$1" completion/leveretctl.fish "/usr/share/fish/vendor_completions.d/$program.fish"
    done
    "$1" completion/_leveretctl_complete /usr/share/zsh/vendor-completions/_leveretctl_complete
}

put() {
    mkdir -p "${2%/*}"
    install -m 0644 "$1" "$2"
}

take_away() {
    rm -f "$2"
}

make_user() {
    if id leveret >/dev/null 2>&1; then
        return
    elif command -v useradd >/dev/null; then
        useradd --system --user-group --home-dir /var/lib/leveret --shell /usr/sbin/nologin leveret
    elif command -v adduser >/dev/null; then
        # The user commands of BusyBox.
        addgroup -S leveret
        adduser -S -D -H -h /var/lib/leveret -s /sbin/nologin -G leveret leveret
    else
        fail "there is neither useradd nor adduser: make the system user leveret, then run this again" 69
    fi
}

make_links() {
    for name in $LINKS; do
        # A RabbitMQ keeps the names of its tools.
        if [ ! -e "/usr/sbin/$name" ] && [ ! -e "/usr/bin/$name" ] && [ ! -L "/usr/bin/$name" ]; then
            ln -s leveretctl "/usr/bin/$name"
        fi
    done
}

# What is there keeps its content, owner and mode.
make_directories() {
    for directory in /etc/leveret /etc/leveret/conf.d; do
        # The configuration may hold passwords.
        [ -d $directory ] || install -d -m 0750 -g leveret $directory
    done
    for directory in /var/lib/leveret /var/lib/leveret-backups; do
        [ -d $directory ] || install -d -m 0700 -o leveret -g leveret $directory
    done
}

install_all() {
    make_user
    for program in $PROGRAMS; do
        # A new file beside the old one: a program that runs cannot be written over.
        install -m 0755 "bin/$program" "/usr/bin/$program.new"
        mv "/usr/bin/$program.new" "/usr/bin/$program"
    done
    make_links
    documents put
    make_directories
    if [ ! -e /etc/leveret/leveret.conf ]; then
        install -m 0640 -g leveret leveret.conf /etc/leveret/leveret.conf
    fi
    if ! has_systemd; then
        echo "Leveret is installed. systemd does not run here; start the broker as the user leveret with"
        echo "  leveret --config /etc/leveret/leveret.conf --config /etc/leveret/conf.d"
        return
    fi
    if command -v deb-systemd-helper >/dev/null; then
        # A removed Debian package has left a mask, and remembers which links its service had. The helper asks for the name
        # of the package.
        for action in purge unmask; do
            DPKG_MAINTSCRIPT_PACKAGE=leveret deb-systemd-helper $action leveret.service >/dev/null || true
        done
    fi
    rm -f $UNIT
    { echo "$MARK"; cat leveret.service; } >$UNIT
    chmod 0644 $UNIT
    systemctl daemon-reload
    systemctl enable --quiet leveret.service
    # A broker that runs closes its clients and writes everything before the new one starts.
    systemctl restart leveret.service
    echo "Leveret is installed, and the service leveret runs."
}

remove_all() {
    if has_systemd && [ -e $UNIT ]; then
        systemctl disable --quiet --now leveret.service
    fi
    rm -f $UNIT
    if has_systemd; then
        systemctl daemon-reload
    fi
    for name in $LINKS; do
        if [ "$(readlink "/usr/bin/$name" || true)" = leveretctl ]; then
            rm -f "/usr/bin/$name"
        fi
    done
    for program in $PROGRAMS; do
        rm -f "/usr/bin/$program"
    done
    documents take_away
    echo "Leveret is removed. Its configuration stays in /etc/leveret, its data in /var/lib/leveret, and its backups in"
    echo "/var/lib/leveret-backups."
}

cd "$(dirname "$0")"
[ -x bin/leveret ] || fail "bin/leveret is missing: run the script of an unpacked archive" 66
if [ -e /var/lib/dpkg/info/leveret.postinst ]; then
    fail "the Debian package is installed: use apt-get instead" 73
fi
case "$# ${1-}" in
    "0 ") action=install_all ;;
    "1 --remove") action=remove_all ;;
    *) usage ;;
esac
[ "$(id -u)" = 0 ] || fail "only root may install" 77
$action
