-- What accounts stood at before their oldest movement that is kept; those whose months were dropped.
CREATE OR REPLACE VIEW :"schema".checkpoints AS
SELECT c.bucket, c.account, c.seq AS sequence, c.at, c.credited, c.debited, c.held, c.allowance
FROM :"schema".checkpoint c;
