-- Rows that are added at schema 110: a claim sheet in its second round.
BEGIN;
INSERT INTO sheets VALUES (1,'small-claims','5a17','name: small-claims','small-claims.yaml','name: tiny',3,5,2,'alice',1795270480000,1);
INSERT INTO sheet_rounds VALUES (1,1,3,4,'[0,1]',1795270480100,1795270480200);
INSERT INTO sheet_rounds VALUES (1,2,4,6,'[0]',1795270480300,NULL);
INSERT INTO sheet_claims VALUES (1,1,0,'rope-above-nope','open','undecided',1,1,1,0.405,-0.693,3.689);
INSERT INTO sheet_claims VALUES (1,1,1,'deposit','futile','not eligible',1,0,1,0.0,0.0,3.689);
COMMIT;
