-- What redeem-by-statements.ts needs besides: each request once, and a counter for each user of a code.
ALTER TABLE redemption ADD PRIMARY KEY (request_id);
CREATE TABLE coupon_user (
  code text NOT NULL,
  user_id text NOT NULL,
  used integer NOT NULL,
  PRIMARY KEY (code, user_id)
);
