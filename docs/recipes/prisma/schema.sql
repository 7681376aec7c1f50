-- The tables of schema.prisma. Each recipe shows its own part.

-- #region wallet
CREATE TABLE wallet (id text PRIMARY KEY, balance integer NOT NULL);
-- #endregion

-- #region product
CREATE TABLE product (sku text PRIMARY KEY, stock integer NOT NULL);
-- #endregion

-- #region booking
CREATE TABLE booking (
  id serial PRIMARY KEY,
  desk text NOT NULL,
  starts_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL
);
-- #endregion

-- #region statement
CREATE TABLE statement (id serial PRIMARY KEY, month text NOT NULL, account text NOT NULL);
-- #endregion

-- #region payment
CREATE TABLE paid_event (id text PRIMARY KEY);
CREATE TABLE purchase (id text PRIMARY KEY, paid integer NOT NULL DEFAULT 0);
-- #endregion

-- #region import
CREATE TABLE shop_import (
  shop text PRIMARY KEY,
  running boolean NOT NULL DEFAULT false,
  rows integer NOT NULL DEFAULT 0
);
-- #endregion

-- #region coupon
CREATE TABLE coupon (code text PRIMARY KEY, max integer NOT NULL, used integer NOT NULL DEFAULT 0);
CREATE TABLE redemption (id serial PRIMARY KEY, code text NOT NULL, "user" text NOT NULL);
-- #endregion

-- #region member
CREATE TABLE member (id serial PRIMARY KEY, name text NOT NULL);
-- #endregion

-- #region upload
CREATE TABLE upload (id serial PRIMARY KEY, "user" text NOT NULL, bytes integer NOT NULL);
-- #endregion

-- #region tokens
CREATE TABLE token_balance ("user" text PRIMARY KEY, "left" integer NOT NULL);
-- #endregion

-- #region project
CREATE TABLE tenant (id text PRIMARY KEY, max_projects integer NOT NULL);
CREATE TABLE project (id serial PRIMARY KEY, tenant text NOT NULL, name text NOT NULL);
-- #endregion

-- #region api-call
CREATE TABLE api_call (id serial PRIMARY KEY, key text NOT NULL, minute text NOT NULL);
CREATE TABLE api_minute (
  key text NOT NULL,
  minute text NOT NULL,
  calls integer NOT NULL,
  PRIMARY KEY (key, minute)
);
-- #endregion

-- #region deploy
CREATE TABLE deploy (
  id serial PRIMARY KEY,
  environment text NOT NULL,
  version text NOT NULL,
  status text NOT NULL DEFAULT 'running'
);
-- #endregion

-- #region message
CREATE TABLE message (
  id serial PRIMARY KEY,
  body text NOT NULL,
  status text NOT NULL DEFAULT 'pending',
  claim_token uuid,
  lease_until timestamptz
);
CREATE TABLE delivery (id serial PRIMARY KEY, message integer NOT NULL);
-- #endregion
