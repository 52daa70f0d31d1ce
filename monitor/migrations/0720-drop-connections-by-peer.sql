-- Connections by remote address alone are read from those by application and remote address, which takes about as long.
drop table pair_peer_hours;
