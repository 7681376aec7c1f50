-- Whether the holder leads by a lock in its session. Who gets that lock takes such a lease over at once, because its
-- holder has lost the lock; any other lease has to be waited for. A constant default rewrites nothing.
ALTER TABLE :"schema".lease ADD COLUMN by_session boolean NOT NULL DEFAULT false;
