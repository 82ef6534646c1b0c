-- Sessions of the application, and what limits guessing of passwords. All times are this database's.

-- Only the SHA-256 of a token is stored. A session is looked up at each of its calls, so that its end, a new password
-- or the owner's deactivation holds at once on every pod.
create table session (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  fingerprint bytea not null unique check (length(fingerprint) = 32),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create index session_account on session (account_id, id);
create index session_age on session (expires_at);

-- Attempts to log in, per address, per account and per pair of both: SHA-256 of what is counted, so that nothing that
-- somebody typed (a password in the wrong field, say) is kept. Accounts that do not exist are counted alike. Counters of
-- a quarter of an hour need not survive a crash.
create unlogged table login_window (
  subject bytea primary key check (length(subject) = 32),
  attempts integer not null,
  started_at timestamptz not null
);
create index login_window_age on login_window (started_at);

-- Pairs of an account and an address that it has logged in from: guessing from elsewhere cannot shut these out.
create table login_address (
  pair bytea primary key check (length(pair) = 32),
  account_id bigint not null references account,
  seen_at timestamptz not null default clock_timestamp()
);
create index login_address_account on login_address (account_id, seen_at);
