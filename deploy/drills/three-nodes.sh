#!/usr/bin/env bash
# Three nodes of Postgres under Patroni on one machine, each in a network of its own, to see what happens when one of them
# fails. Needs Linux, root, and the Debian packages etcd-server, patroni and postgresql-15.
#
#   three-nodes.sh up FOLDER [synchronous]   starts etcd and three nodes, and waits for a primary with two replicas
#   three-nodes.sh url                       what DATABASE_URL is
#   three-nodes.sh primary                   the number of the node that takes writes; fails while there is none
#   three-nodes.sh replicas                  how many replicas follow it
#   three-nodes.sh kill N | start N          ends all processes of node N at once, and starts it again
#   three-nodes.sh pause N | resume N        stops all processes of node N, as a machine that hangs
#   three-nodes.sh cut N | mend N            takes node N from the network: nothing is refused, nothing arrives
#   three-nodes.sh down FOLDER               ends everything and removes the networks and the folder
set -euo pipefail

readonly NETWORK=10.77.0
readonly BINARIES=/usr/lib/postgresql/15/bin
readonly PASSWORD=drill
readonly STATE=/run/fleet-drill

main() {
  local command=${1:-} argument=${2:-}
  case $command in
    up) up "$argument" "${3:-}" ;;
    url) echo "postgres://postgres:$PASSWORD@$(address 1):5432,$(address 2):5432,$(address 3):5432/postgres" ;;
    primary) primary ;;
    replicas) replicas ;;
    kill) signal "$argument" KILL ;;
    start) start "$argument" ;;
    pause) signal "$argument" STOP ;;
    resume) signal "$argument" CONT ;;
    cut) ip link set "fleetdrill$argument" down ;;
    mend) ip link set "fleetdrill$argument" up ;;
    down) down "$argument" ;;
    *) sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2; exit 2 ;;
  esac
}

address() { echo "$NETWORK.1$1"; }

up() {
  local folder=$1 synchronous=false node
  [ "$2" = synchronous ] && synchronous=true
  mkdir -p "$folder"
  chmod 755 "$folder"
  echo "$folder" >"$STATE"
  ip link add fleetdrill type bridge
  ip address add "$NETWORK.1/24" dev fleetdrill
  ip link set fleetdrill up
  for node in 1 2 3; do network "$node"; done
  ETCD_UNSUPPORTED_ARCH=$(uname -m | sed 's/aarch64/arm64/') setsid etcd --data-dir "$folder/etcd" \
    --listen-client-urls "http://$NETWORK.1:2379" --advertise-client-urls "http://$NETWORK.1:2379" \
    --listen-peer-urls "http://$NETWORK.1:2380" >"$folder/etcd.log" 2>&1 </dev/null &
  echo $! >"$folder/etcd.pid"
  for node in 1 2 3; do
    mkdir -m 700 "$folder/node$node"
    configuration "$node" "$folder" "$synchronous" >"$folder/node$node.yml"
    chown -R postgres: "$folder/node$node" "$folder/node$node.yml"
    start "$node"
  done
  until primary >/dev/null && [ "$(replicas)" = 2 ]; do sleep 0.5; done
}

network() {
  local node=$1
  ip netns add "fleetdrill$node"
  ip link add "fleetdrill$node" type veth peer name eth0 netns "fleetdrill$node"
  ip link set "fleetdrill$node" master fleetdrill up
  ip -n "fleetdrill$node" address add "$(address "$node")/24" dev eth0
  ip -n "fleetdrill$node" link set eth0 up
  ip -n "fleetdrill$node" link set lo up
}

# ttl: how long the others wait for a primary that is silent. Patroni wants ttl >= loop_wait + 2 * retry_timeout.
# synchronous_mode_strict: without it a primary acknowledges alone while it has no replica, as each does after its promotion.
configuration() {
  local node=$1 folder=$2 synchronous=$3
  cat <<YAML
scope: fleet
name: node$node
restapi: { listen: '$(address "$node"):8008', connect_address: '$(address "$node"):8008' }
etcd3: { host: '$NETWORK.1:2379' }
bootstrap:
  dcs:
    ttl: 8
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1073741824
    primary_start_timeout: 0
    synchronous_mode: $synchronous
    synchronous_mode_strict: $synchronous
    postgresql:
      use_pg_rewind: true
      parameters: { max_connections: 200, wal_log_hints: 'on', hot_standby_feedback: 'on' }
  initdb: [encoding: UTF8, data-checksums]
postgresql:
  listen: '$(address "$node"):5432'
  connect_address: '$(address "$node"):5432'
  data_dir: $folder/node$node/data
  bin_dir: $BINARIES
  pgpass: $folder/node$node/pgpass
  authentication:
    superuser: { username: postgres, password: $PASSWORD }
    replication: { username: replicator, password: $PASSWORD }
  parameters: { unix_socket_directories: '$folder/node$node' }
  pg_hba:
    - local all all trust
    - host all all $NETWORK.0/24 scram-sha-256
    - host replication replicator $NETWORK.0/24 scram-sha-256
YAML
}

start() {
  local folder
  folder=$(cat "$STATE")
  setsid ip netns exec "fleetdrill$1" setpriv --reuid=postgres --regid=postgres --init-groups \
    env HOME="$folder/node$1" patroni "$folder/node$1.yml" >>"$folder/node$1.log" 2>&1 </dev/null &
}

# Processes of a node may end while they are listed.
signal() {
  local process
  for process in $(ip netns pids "fleetdrill$1"); do kill "-$2" "$process" 2>/dev/null || true; done
}

primary() {
  local node
  for node in 1 2 3; do
    if curl --silent --fail --max-time 1 --output /dev/null "http://$(address "$node"):8008/primary"; then
      echo "$node"
      return 0
    fi
  done
  return 1
}

# Patroni answers 200 where a replica follows the primary.
replicas() {
  local node count=0
  for node in 1 2 3; do
    ! curl --silent --fail --max-time 1 --output /dev/null "http://$(address "$node"):8008/replica" || count=$((count + 1))
  done
  echo "$count"
}

down() {
  local folder=$1 node
  for node in 1 2 3; do
    signal "$node" KILL
    ip link delete "fleetdrill$node" || true
    ip netns delete "fleetdrill$node" || true
  done
  [ ! -e "$folder/etcd.pid" ] || kill -KILL "$(cat "$folder/etcd.pid")" || true
  ip link delete fleetdrill || true
  rm -rf "$folder" "$STATE"
}

main "$@"
