CREATE TABLE coupon (
  code text PRIMARY KEY,
  max integer NOT NULL,
  -- Only for redeem-by-statements.ts: how often it was redeemed.
  used integer NOT NULL DEFAULT 0
);

-- The id is that of the request.
CREATE TABLE redemption (
  request_id text NOT NULL,
  code text NOT NULL,
  user_id text NOT NULL
);
CREATE INDEX ON redemption (code, user_id);
