-- Rows that are added to those of rows_101.sql at schema 106: three principals.
BEGIN;
INSERT INTO principals VALUES ('alice','submitter','aa01',NULL,0,NULL,1795270470000,0,0,2.0,8,0,0.0,0,12.5);
INSERT INTO principals VALUES ('boss','operator','bb02','bb01',1795270480000,NULL,1795270470001,1895270470001,0,0.0,0,0,0.0,0,0.0);
INSERT INTO principals VALUES ('gpu01','worker',NULL,NULL,0,'pelab://worker/gpu01',1795270470002,0,1,0.0,0,0,0.0,0,0.0);
COMMIT;
