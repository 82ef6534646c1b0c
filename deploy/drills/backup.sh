#!/usr/bin/env bash
# A Postgres that pgBackRest backs up as deploy/pgbackrest says, to see what a restore brings back. Needs Linux, root, and the
# Debian packages pgbackrest and postgresql-15.
#
#   backup.sh up FOLDER [PORT]   makes a Postgres that archives its log, and starts it
#   backup.sh url                what DATABASE_URL is
#   backup.sh run COMMAND        runs a command of pgBackRest, such as 'pgbackrest --stanza=fleet info'
#   backup.sh archive            ends the segment of the log that is written, and waits until it is archived
#   backup.sh now                the time of the server, to restore to
#   backup.sh destroy            ends all processes of Postgres at once, and removes its files
#   backup.sh start              starts it, and waits until it takes writes
#   backup.sh down               ends everything and removes the folder
set -euo pipefail

BINARIES=/usr/lib/postgresql/15/bin
STATE=/run/fleet-backup-drill
SETTINGS=$(dirname "$(readlink -f "$0")")/../pgbackrest
readonly BINARIES STATE SETTINGS
FOLDER='' PORT=''

main() {
  local command=${1:-} argument=${2:-}
  case $command in
    up) up "${argument:?a folder}" "${3:-5499}" ;;
    url | run | archive | now | destroy | start | down)
      read -r FOLDER PORT <"$STATE"
      "$command" "$argument"
      ;;
    *) sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2; exit 2 ;;
  esac
}

up() {
  FOLDER=$1 PORT=$2
  mkdir -p "$FOLDER"
  chmod 755 "$FOLDER"
  echo "$FOLDER $PORT" >"$STATE"
  install -d -o postgres -g postgres -m 700 "$FOLDER/data" "$FOLDER/repository" "$FOLDER/scratch"
  sed -e "s|=/var/lib/pgbackrest$|=$FOLDER/repository|" -e "s|=/var/lib/postgresql/15/main$|=$FOLDER/data|" \
    "$SETTINGS/pgbackrest.conf" >"$FOLDER/pgbackrest.conf"
  as_postgres initdb --pgdata="$FOLDER/data" --auth=trust --encoding=UTF8 --data-checksums >"$FOLDER/initdb.log"
  cat - "$SETTINGS/archive.conf" >>"$FOLDER/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $PORT
unix_socket_directories = '$FOLDER/scratch'
max_connections = 200
CONF
  start
}

# The programs of Postgres and pgBackRest, also when Postgres itself calls them.
as_postgres() {
  (cd "$FOLDER/scratch" && setpriv --reuid=postgres --regid=postgres --init-groups \
    env HOME="$FOLDER/scratch" PATH="$BINARIES:$PATH" PGBACKREST_CONFIG="$FOLDER/pgbackrest.conf" \
    PGBACKREST_LOG_PATH="$FOLDER/scratch" PGBACKREST_LOCK_PATH="$FOLDER/scratch" PGBACKREST_LOG_LEVEL_CONSOLE=info \
    PGBACKREST_PG1_PORT="$PORT" PGBACKREST_PG1_SOCKET_PATH="$FOLDER/scratch" "$@")
}

url() { echo "postgres://postgres@127.0.0.1:$PORT/postgres"; }

run() { as_postgres bash -euo pipefail -c "$1"; }

query() { as_postgres psql --host="$FOLDER/scratch" --port="$PORT" --no-psqlrc --tuples-only --no-align --command="$1"; }

start() {
  as_postgres pg_ctl --pgdata="$FOLDER/data" --log="$FOLDER/scratch/postgres.log" --timeout=600 --wait start \
    >/dev/null </dev/null || { tail -n 20 "$FOLDER/scratch/postgres.log" >&2; exit 1; }
  until [ "$(query 'select not pg_is_in_recovery()')" = t ]; do sleep 0.1; done
}

now() { query "select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00')"; }

archive() {
  local segment
  segment=$(query 'select pg_walfile_name(pg_switch_wal())')
  until [ "$(query "select coalesce(max(last_archived_wal) collate \"C\" >= '$segment', false) from pg_stat_archiver")" = t ]; do
    sleep 0.1
  done
}

destroy() {
  local left
  # The first process goes first, so that it starts no others. One that lived on would write into what is restored.
  kill -KILL "$(head -n 1 "$FOLDER/data/postmaster.pid")"
  while left=$(processes) && [ -n "$left" ]; do
    # Some may end while they are listed.
    kill -KILL $left 2>/dev/null || true
    sleep 0.1
  done
  find "$FOLDER/data" -mindepth 1 -delete
}

# All of Postgres work in its data directory.
processes() { find /proc/[0-9]*/cwd -maxdepth 0 -lname "$FOLDER/data" 2>/dev/null | cut -d / -f 3 || true; }

down() {
  [ ! -e "$FOLDER/data/postmaster.pid" ] || destroy
  rm -rf "$FOLDER" "$STATE"
}

main "$@"
